"""Read the visible text of a page, and find words that only its PDF has."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path


class Text(HTMLParser):
    """The visible text of a page, its links, and the names of its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.elements: list[str] = []
        self._hidden = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._hidden = tag if tag in ("script", "style") else ""
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        self._hidden = ""

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data)


def words_only_in_pdf(pdf: Path, page: Path) -> set[str]:
    """Return the words of the PDF that neither the page nor a figure beside the PDF has."""
    shown = " ".join(Text(page.read_text()).words).lower()
    printed = _words(pdf).difference(*map(_words, pdf.parent.glob("figures/**/*.pdf")))
    assert len(printed) > 60
    return {word for word in printed if word not in shown}


def _words(pdf: Path) -> set[str]:
    done = subprocess.run(["pdftotext", "-raw", pdf, "-"], capture_output=True, check=True)
    pages = re.sub(r"page \d+ of \d+|\d+(\.\d+)* |[-\u2010]\n|\u00a0", " ", done.stdout.decode())
    return set(re.findall(r"[a-z]{4,}", pages.lower()))
