"""Detect secrets in text, to refuse them in definition files and to redact them in records.

Hosts are reached with SSH keys and an agent, and passwords of power switches are in separate files. So
nothing that samovar reads or runs needs a secret in clear text. A secret without a recognisable form, such as
the URL of a webhook, cannot be detected; see docs/explanation/security.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

REDACTED = "…"
LEAST_SECRET_LENGTH = 6
"""Shorter values of environment variables may be ordinary words; redacting these would garble texts."""
_WORDS = r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key)"
_PATTERNS: Mapping[str, re.Pattern[str]] = {
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
    "a password": re.compile(r"(?i)(?<![^{,\s'\"])(?:passw(?:or)?d|passphrase)['\"]?\s*:(?=\s*\S)[^\n,}]*"),
}
_NAME = re.compile(r"(?i)pass|secret|token|api_?key|credential|^SSH_AUTH_SOCK$")
ADVICE = "remove it; use SSH keys for hosts, `password_file` for power switches, and files for other secrets"


def find_secrets(text: str) -> Iterator[tuple[int, str]]:
    """Yield the index and the kind of each apparent secret in a text."""
    for kind, pattern in _PATTERNS.items():
        yield from ((match.start(), kind) for match in pattern.finditer(text))


def redacted(text: str, environment: Mapping[str, str]) -> str:
    """Return a text with `…` in place of secrets: apparent ones, and the values of secret variables."""
    for pattern in _PATTERNS.values():
        text = pattern.sub(REDACTED, text)
    secrets = [value for name, value in environment.items() if _NAME.search(name)]
    for value in sorted(secrets, key=len, reverse=True):
        if len(value) >= LEAST_SECRET_LENGTH:
            text = text.replace(value, REDACTED)
    return text
