"""Typeset a document: Jinja2 makes its structure, Typst its pages; JSON passes the values.

No value of a campaign is ever inserted into Typst markup. The few values that the template itself writes
become Typst string literals, quoted by the finalize function of Jinja2.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samovar.errors import ReportError
from samovar.report.campaign_data import Json

TEMPLATES = Path(__file__).parents[2] / "templates" / "report"
DOCUMENT = "report.typ.j2"


def typeset(
    document: Json, bundle: Path, t_s: float, templates: Path = TEMPLATES, template: str = DOCUMENT
) -> bytes:
    """Return the PDF, dated with the epoch time t_s; the same input gives the same bytes."""
    import typst

    with TemporaryDirectory(prefix="samovar-report-") as folder:
        root = Path(folder)
        for module in sorted(templates.glob("*.typ")):
            shutil.copy(module, root)
        values = printable(document)
        (root / "report.typ").write_text(_fill_template(values, templates / template), encoding="utf-8")
        (root / "bundle.json").write_text(json.dumps(values), encoding="utf-8")
        for file in dict.fromkeys(str(figure["file"]) for figure in document["figures"]):
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(bundle / file, root / file)
        try:
            return typst.compile(
                root / "report.typ", root=root, format="pdf", timestamp=int(t_s), ignore_system_fonts=True
            )
        except (typst.TypstError, RuntimeError, OSError) as error:
            message = str(getattr(error, "diagnostic", "") or error).strip()
            raise ReportError(f"{document['campaign']}: Typst: {message}") from error


def printable(value: Any) -> Any:
    """Return a JSON value with the code points of unprintable characters, which would garble the text."""
    if isinstance(value, str):
        return "".join(one if _is_printable(one) else f"‹U+{ord(one):04X}›" for one in value)
    if isinstance(value, dict):
        return {key: printable(entry) for key, entry in value.items()}
    return [printable(entry) for entry in value] if isinstance(value, list) else value


def _is_printable(character: str) -> bool:
    """Return whether a character is no control, direction, surrogate or private character."""
    return character in "\n\t" or not unicodedata.category(character).startswith("C")


def _fill_template(document: Json, template: Path) -> str:
    """Return the Typst source; raises ReportError if the template uses a value that does not exist."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        finalize=typst_string,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # finalize quotes for Typst; HTML escapes would be printed
    )
    try:
        return environment.get_template(template.name).render(document)
    except jinja2.TemplateError as error:
        raise ReportError(f"{template}: {error}; the template may use {', '.join(document)}") from error


def typst_string(value: object) -> str:
    """Return a value as a Typst string literal, in which only backslash and double quote are special."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in text) + '"'
