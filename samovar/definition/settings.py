"""The type of a host's setting in a file: one value, or one per host or role."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import PlainValidator

from samovar.definition.fields import Word

EXPECTED = "expected a value, or a mapping of hosts to values such as {sender: cubic, sender2: cdg}"


def _setting(value: object) -> str | dict[str, str]:
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict) and value and all(isinstance(one, str) for one in value.values()):
        return {str(host): str(one) for host, one in value.items()}
    raise ValueError(EXPECTED)


SettingValue = Annotated[str | Mapping[str, str], PlainValidator(_setting)]
Settings = Mapping[Word, SettingValue]
