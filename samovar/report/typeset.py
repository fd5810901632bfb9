"""Set the document: a Jinja2 template for its structure, Typst for its pages, JSON for everything said in it.

No value from a campaign is ever spliced into Typst markup. The few that the template itself writes are Typst
string literals, quoted by Jinja2's finalize.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jinja2
import typst

from samovar.errors import ReportError
from samovar.report.campaign_data import Json

TEMPLATES = Path(__file__).parents[2] / "templates" / "report"
DOCUMENT = "report.typ.j2"


def typeset(
    document: Json, bundle: Path, t_s: float, templates: Path = TEMPLATES, template: str = DOCUMENT
) -> bytes:
    """Return the PDF, the same bytes for the same input; t_s is the epoch time that it bears."""
    with TemporaryDirectory(prefix="samovar-report-") as folder:
        root = Path(folder)
        lay_out(root, document, bundle, templates / template)
        try:
            return typst.compile(
                root / "report.typ", root=root, format="pdf", timestamp=int(t_s), ignore_system_fonts=True
            )
        except (typst.TypstError, RuntimeError, OSError) as error:
            raise ReportError(f"{document['campaign']}: Typst: {explain(error)}") from error


def lay_out(root: Path, document: Json, bundle: Path, template: Path) -> None:
    """Put into one folder what Typst reads: its modules, the values, the figures."""
    for module in sorted(template.parent.glob("*.typ")):
        shutil.copy(module, root)
    (root / "report.typ").write_text(render(legible(document), template), encoding="utf-8")
    (root / "bundle.json").write_text(json.dumps(legible(document)), encoding="utf-8")
    for file in figure_files(document):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(bundle / file, root / file)


def legible(value: Any) -> Any:
    """Return a JSON value with unprintable characters named: they would turn or garble the text around."""
    if isinstance(value, str):
        return "".join(one if shows(one) else f"‹U+{ord(one):04X}›" for one in value)
    if isinstance(value, dict):
        return {key: legible(entry) for key, entry in value.items()}
    return [legible(entry) for entry in value] if isinstance(value, list) else value


def shows(one: str) -> bool:
    """Say whether a character has a place on paper: no control, direction, surrogate or private one."""
    return one in "\n\t" or not unicodedata.category(one).startswith("C")


def figure_files(document: Json) -> Iterable[str]:
    """List the figures that the document places."""
    return dict.fromkeys(str(figure["file"]) for figure in document["figures"])


def render(document: Json, template: Path) -> str:
    """Fill the template; raises ReportError where it asks for what the document does not hold."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(template.parent),
        undefined=jinja2.StrictUndefined,
        finalize=typst_string,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # finalize quotes for Typst; HTML's escapes would be text there
    )
    try:
        return environment.get_template(template.name).render(document)
    except jinja2.TemplateError as error:
        known = ", ".join(document)
        raise ReportError(f"{template}: {error}; the template may use {known}") from error


def typst_string(value: object) -> str:
    """Write a value as a Typst string literal; in one, only backslash and double quote are special."""
    text = "".join(one if one.isprintable() else f"\\u{{{ord(one):x}}}" for one in escaped(str(value)))
    return f'"{text}"'


def escaped(text: str) -> str:
    """Escape what would end or change a Typst string."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def explain(error: Exception) -> str:
    """Say what Typst found wrong and where, with its hints."""
    return str(getattr(error, "diagnostic", "") or error).strip()
