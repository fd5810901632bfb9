"""The files that recipes are made of: what they include too, each with a digest of what is in it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment
from jinja2.meta import find_referenced_templates

DIGITS = 16


def digest_recipe_files(files: Iterable[Path], templates: Path) -> Mapping[str, str]:
    """Return the SHA-256, cut to 16 digits, of recipe files and of all that they include, by name."""
    waiting = [file.relative_to(templates).as_posix() for file in files]
    found: dict[str, str] = {}
    parser = Environment(autoescape=False)
    while waiting:
        name = waiting.pop()
        if name not in found:
            text = (templates / name).read_text(encoding="utf-8")
            found[name] = hashlib.sha256(text.encode()).hexdigest()[:DIGITS]
            waiting += [one for one in find_referenced_templates(parser.parse(text)) if one]
    return dict(sorted(found.items()))
