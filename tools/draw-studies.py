#!/usr/bin/env python3
"""Copy the PDFs of studies to docs/gallery, with pictures of their pages: tools/draw-studies.py STUDY...

Run it with .venv/bin/python after `fab report --study STUDY`. Each study gets a picture of three pages:
the first, and the two others with the most figures. docs/gallery/README.md lists all studies of the gallery.
Needs poppler-utils.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from tempfile import TemporaryDirectory

import typst

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "gallery"
MOST_BYTES = 2_000_000
"""The size of the largest PDF that the gallery accepts, because larger ones do not belong in a repository."""
PAGES, PIXELS_WIDE = 3, 1200
FIGURE = re.compile(r"^Figure \d+", re.MULTILINE)


def main() -> None:
    """Add the named studies to the gallery; exit with a message if a report is missing or too large."""
    parser = ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("studies", nargs="+", metavar="STUDY")
    parser.add_argument("--results", type=Path, default=ROOT / "results" / "studies")
    arguments = parser.parse_args()
    GALLERY.mkdir(parents=True, exist_ok=True)
    for name in arguments.studies:
        add(arguments.results / name, name)
    entries = sorted(GALLERY.glob("*.json"))
    lines = [entry_lines(json.loads(file.read_text())) for file in entries]
    (GALLERY / "README.md").write_text("# Reports of the shipped studies\n\n" + "\n".join(lines))


def add(folder: Path, name: str) -> None:
    """Copy a study's PDF, draw three of its pages, and write its entry of the list to a JSON file."""
    pdf = folder / f"{name}.pdf"
    if not pdf.is_file():
        sys.exit(f"{pdf} is missing; run `fab report --study {name}` first")
    if pdf.stat().st_size > MOST_BYTES:
        sys.exit(f"{pdf} has {pdf.stat().st_size} bytes; the gallery takes at most {MOST_BYTES}")
    texts = read("pdftotext", "-layout", str(pdf), "-").split("\f")[:-1]
    by_figures = sorted(range(1, len(texts)), key=lambda page: (-len(FIGURE.findall(texts[page])), page))
    pages = [0, *sorted(by_figures[: PAGES - 1])]
    with TemporaryDirectory() as folder_of_pages:
        for page in pages:
            at = ["-f", str(page + 1), "-l", str(page + 1)]
            read("pdftoppm", "-r", "110", "-png", "-singlefile", *at, str(pdf), f"{folder_of_pages}/{page}")
        images = ", ".join(
            f'box(stroke: 0.5pt + luma(160), image("{page}.png", width: 6cm))' for page in pages
        )
        source = Path(folder_of_pages, "pages.typ")
        source.write_text(
            "#set page(width: auto, height: auto, margin: 2mm)\n"
            f"#grid(columns: {len(pages)}, gutter: 3mm, {images})\n"
        )
        inches = (6 * len(pages) + 0.3 * (len(pages) - 1) + 0.4) / 2.54
        picture = typst.compile(source, root=Path(folder_of_pages), format="png", ppi=PIXELS_WIDE / inches)
        (GALLERY / f"{name}.png").write_bytes(picture)
    shutil.copyfile(pdf, GALLERY / pdf.name)
    lines = json.loads((folder / "scorecard.json").read_text())
    counts = {
        word: sum(line["verdict"] == word for line in lines) for word in ("reproduced", "differs", "no data")
    }
    title = read("pdfinfo", str(pdf)).partition("Title:")[2].partition("\n")[0].strip()
    entry = {"study": name, "title": title, "pages": len(texts), "expectations": len(lines), **counts}
    (GALLERY / f"{name}.json").write_text(json.dumps(entry, indent=1) + "\n")


def entry_lines(entry: dict[str, str | int]) -> str:
    """Return the Markdown text about one study in the gallery's list."""
    name = entry["study"]
    rest = [
        f"{entry[word]} {text}"
        for word, text in (("differs", "differ"), ("no data", "without data"))
        if entry[word]
    ]
    of = f"{entry['reproduced']} of {entry['expectations']} expectations reproduced"
    return (
        f"## {entry['title']}\n\n"
        f"[{name}.pdf]({name}.pdf), {entry['pages']} pages: {', '.join([of, *rest])}.\n\n"
        f"![Three pages of the report of study {name}]({name}.png)\n"
    )


def read(*command: str) -> str:
    """Run a program and return its standard output."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()
