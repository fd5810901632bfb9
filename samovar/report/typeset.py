"""Typeset a report with Typst. Values are passed in a JSON file, so that no value is taken for markup."""

from __future__ import annotations

import json
import shutil
import unicodedata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from samovar import installation
from samovar.errors import ReportError
from samovar.report.campaign_data import Json

TEMPLATES = installation.TEMPLATES / "report"


def typeset(document: Json, bundle: Path, t_s: float, template: str = "report.typ") -> bytes:
    """Return the PDF of a report; the same input gives the same bytes. Raises ReportError.

    `t_s` is the date of the PDF in seconds since the epoch.
    """
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
            return typst.compile(
                root / template, root=root, format="pdf", timestamp=int(t_s), ignore_system_fonts=True
            )
        except (typst.TypstError, RuntimeError, OSError) as error:
            message = str(getattr(error, "diagnostic", "") or error).strip()
            raise ReportError(f"{document['campaign']}: Typst: {message}") from error


def printable(value: Any) -> Any:
    """Return a JSON value in which unprintable characters are replaced by code points such as ‹U+0007›."""
    if isinstance(value, str):
        others = {one for one in value if one not in "\n\t" and unicodedata.category(one).startswith("C")}
        return value.translate({ord(one): f"‹U+{ord(one):04X}›" for one in others})
    if isinstance(value, dict):
        return {key: printable(entry) for key, entry in value.items()}
    return [printable(entry) for entry in value] if isinstance(value, list) else value
