"""Render self-contained HTML pages: style, scripts, data and pictures are in the page's only file."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Any

from samovar.experiment import redacted
from samovar.report.campaign_data import Json
from samovar.report.typeset import TEMPLATES, change_texts, printable

PAGE_TEMPLATES = TEMPLATES / "page"
LIBRARY = ("uPlot.LICENSE", "uPlot.iife.min.js")


def render(template: str, values: Json, scripts: tuple[str, ...] = (), drawn: Json | None = None) -> bytes:
    """Return a page made from a template; the same values give the same bytes.

    Texts are escaped. Unprintable characters and apparent secrets are replaced in `values`, but not in
    `drawn`, which has Base64. The page's content security policy allows only these scripts, and no access to
    the network.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # slow to import

    environment = Environment(
        loader=FileSystemLoader(PAGE_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    sources = [_source(name) for name in scripts]
    texts = change_texts(printable(values), partial(redacted, environment={}))
    html = environment.get_template(template).render(
        **texts,
        **(drawn or {}),
        style=_source("style.css"),
        scripts=sources,
        script_hashes=[b64encode(sha256(one.encode()).digest()).decode() for one in sources],
        next_figure=partial(next, count(1)),
        next_table=partial(next, count(1)),
        script_json=_script_json,
    )
    return (html.rstrip() + "\n").encode()


def _source(name: str) -> str:
    """Return a file of the page's templates; the library begins with its licence, as a comment."""
    if name != "uPlot":
        return (PAGE_TEMPLATES / name).read_text("utf-8")
    licence, code = ((PAGE_TEMPLATES / one).read_text("utf-8") for one in LIBRARY)
    return f"/*\n{licence.strip()}\n*/\n{code}"


def _script_json(value: Any) -> str:
    """Return JSON for a <script> element, which ends at `</script` even within a text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: Any) -> str:
    """Return JSON compressed as zlib does (RFC 1950), in Base64."""
    return b64encode(zlib.compress(json.dumps(value, ensure_ascii=False).encode(), 9)).decode()


def data_url(picture: bytes) -> str:
    """Return a picture, SVG or PNG, as a URL that contains it."""
    kind = "png" if picture.startswith(b"\x89PNG") else "svg+xml"
    return f"data:image/{kind};base64,{b64encode(picture).decode()}"
