"""What looks like a secret: refused in files that campaigns keep, blotted out of what is recorded.

Hosts are reached with keys and an agent, machines are switched with passwords in files of their own; nothing
that samovar reads or runs needs a secret in clear. What only its owner knows to be one, as an address that
whoever knows it may post to, cannot be told from other text: docs/explanation/security.md says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

BLOT = "…"
LEAST_LENGTH = 6
"""Shorter values of the environment are words of their own: blotting them out would garble texts."""
_WORDS = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key)"
_FORMS: Mapping[str, re.Pattern[str]] = {
    "a private key": re.compile(
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]+-----END [A-Z ]*PRIVATE KEY-----)?"
    ),
    "a password in a URL": re.compile(r"(?<=://)[^\s/:@'\"]{0,256}:[^\s/@'\"]{1,256}(?=@)"),
    "a credential": re.compile(r"(?i)(?<=authorization: )[^'\"\n]+|\bbearer\s+[A-Za-z0-9._~+/=-]{8,}"),
    "a secret argument": re.compile(
        rf"(?i)(?<![A-Za-z0-9-])--?{_WORDS}(?:=|[\s,'\"]+)(?![-$'\"])[^\s,'\"\]]+"
    ),
    "a secret value": re.compile(rf"(?i){_WORDS}=(?![$\s'\"])[^\s'\",]+"),
    "a token": re.compile(r"\bgh[opsu]_[A-Za-z0-9]{20,}|\bxox[abp]-[A-Za-z0-9-]{10,}|\bAKIA[0-9A-Z]{16}\b"),
}
_KEY = re.compile(r"(?i)(?:^|[{,\s])(?:passw(?:or)?d|passphrase)['\"]?\s*:(?=\s*\S)", re.MULTILINE)
_NAME = re.compile(r"(?i)pass|secret|token|api_?key|credential|^SSH_AUTH_SOCK$")
ACCEPTED = (
    "expected none here: hosts take keys and an agent, power a password_file, commands a file that they read"
)


class Found(NamedTuple):
    """Something that looks like a secret: what, and where it begins in the text."""

    what: str
    at: int


def secrets_in(text: str) -> Iterator[Found]:
    """Find what looks like a secret in the text of a definition."""
    for what, form in _FORMS.items():
        yield from (Found(what, match.start()) for match in form.finditer(text))
    yield from (Found("a password", match.end() - 1) for match in _KEY.finditer(text))


def redacted(text: str, environment: Mapping[str, str]) -> str:
    """Blot out of a text what looks like a secret, and the values of secrets in an environment."""
    for form in _FORMS.values():
        text = form.sub(BLOT, text)
    for value in sorted(_values(environment), key=len, reverse=True):
        text = text.replace(value, BLOT)
    return text


def _values(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        if _NAME.search(name) and len(value) >= LEAST_LENGTH:
            yield value
