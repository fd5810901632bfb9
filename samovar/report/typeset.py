"""Typeset a report with Typst. Values are passed in a JSON file, so that no value is read as markup."""

from __future__ import annotations

import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samovar import installation
from samovar.errors import ReportError
from samovar.report.campaign_data import Json

TEMPLATES = installation.TEMPLATES / "report"
LARGEST_SVG = 1_000_000
"""Largest SVG picture in bytes. Larger ones, which have tens of thousands of points, become PNG pictures."""


def typeset(document: Json, bundle: Path, t_s: float, template: str) -> bytes:
    """Return the PDF of a report; the same input gives the same bytes. Raises ReportError.

    `t_s` is the date of the PDF in seconds since the epoch.
    """
    return _compile(document, bundle, template, format="pdf", timestamp=int(t_s))[0]


def draw_pictures(document: Json, testbeds: Sequence[Json], bundle: Path) -> dict[str, bytes]:
    """Return SVG pictures: figures under their file names, the testbeds' paths under `path 1` and so on.

    A figure whose SVG would be larger than LARGEST_SVG is a PNG picture instead. Raises ReportError.
    """
    names = [f"path {place}" for place, one in enumerate(testbeds, 1) if one["path"]["hosts"]]
    names += dict.fromkeys(str(one["file"]) for one in document["figures"] if one["file"])
    if not names:
        return {}
    document = {**document, "testbeds": testbeds}
    pictures = dict(zip(names, _compile(document, bundle, "pictures.typ", format="svg"), strict=True))
    if any(len(picture) > LARGEST_SVG for picture in pictures.values()):
        drawn = zip(names, _compile(document, bundle, "pictures.typ", format="png", ppi=200), strict=True)
        pictures |= {name: png for name, png in drawn if len(pictures[name]) > LARGEST_SVG}
    return pictures


def missing_characters(document: Json) -> str:
    """Return the characters of a document that the PDF shows as boxes, because its fonts lack them."""
    others = {one for one in json.dumps(printable(document), ensure_ascii=False) if not one.isascii()}
    try:
        small = {"figures": [], "campaign": "", "characters": sorted(others)}
        _compile(small, Path(), "characters.typ", format="pdf", pdf_standards="a-2b")
    except ReportError as error:  # PDF/A-2b requires a glyph for each character
        return "".join(re.findall('the text `"(.+?)"`', str(error)))
    return ""


def _compile(document: Json, bundle: Path, template: str, **options: Any) -> list[bytes]:
    """Typeset a template with Typst; return one PDF, or a picture of each page. Raises ReportError."""
    import typst

    with TemporaryDirectory(prefix="samovar-report-") as folder:
        root = Path(folder)
        for module in sorted(TEMPLATES.glob("*.typ")):
            shutil.copy(module, root)
        (root / "bundle.json").write_text(json.dumps(printable(document)), encoding="utf-8")
        for file in dict.fromkeys(str(one["file"]) for one in document["figures"] if one["file"]):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(bundle / file, root / file)
        try:
            made = typst.compile(root / template, root=root, ignore_system_fonts=True, **options)
        except (typst.TypstError, RuntimeError, OSError) as error:
            message = str(getattr(error, "diagnostic", "") or error).strip()
            raise ReportError(f"{document['campaign']}: Typst: {message}") from error
    return made if isinstance(made, list) else [made]


def printable(value: Any) -> Any:
    """Return a JSON value in which unprintable characters are replaced by code points such as ‹U+0007›."""
    return change_texts(value, _printable_text)


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with each text, except keys, replaced by what `change` returns for it."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: change_texts(entry, change) for key, entry in value.items()}
    return [change_texts(entry, change) for entry in value] if isinstance(value, (list, tuple)) else value


def _printable_text(text: str) -> str:
    if text.isprintable():
        return text
    others = {one for one in text if one not in "\n\t" and unicodedata.category(one).startswith("C")}
    return text.translate({ord(one): f"‹U+{ord(one):04X}›" for one in others})
