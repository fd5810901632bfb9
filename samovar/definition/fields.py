"""Field types: text as written in, typed value out, a message that says what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from samovar import units
from samovar.definition.nearest import unknown
from samovar.definition.yamltext import plain

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9._@-]{0,14}")  # IFNAMSIZ is 16 on Linux and FreeBSD
_ALGORITHM = re.compile(r"[a-z0-9_-]{1,32}")


class Strict(BaseModel):
    """A frozen model that refuses unknown keys; aliases are the keys of the YAML file."""

    model_config = ConfigDict(frozen=True, extra="forbid")


@dataclass(frozen=True)
class Buffer:
    """The size of a queue, in packets or in bytes (one of both is None)."""

    packets: int | None
    bytes: int | None


def parse_buffer(text: str) -> Buffer:
    """Read a queue size such as 546packets or 819KB; raises UnitError."""
    unit = text.lstrip("+-0123456789. ")
    if not unit:
        raise units.UnitError(f"'{text}' has no unit; expected a buffer such as 546packets or 819KB")
    if unit[0] in "pPfF":
        return Buffer(units.parse_packets(text), None)
    return Buffer(None, units.parse_size(text))


def parse_name(text: str) -> str:
    """Read a name of letters, digits, dot, underscore and hyphen; raises UnitError."""
    if not _NAME.fullmatch(text):
        raise units.UnitError(f"'{text}' is no name; expected letters, digits, '.', '_' and '-'")
    return text


def parse_interface(text: str) -> str:
    """Read an interface's name, at most 15 characters; raises UnitError."""
    if not _INTERFACE.fullmatch(text):
        expected = "expected one such as eth1 (at most 15 characters)"
        raise units.UnitError(f"'{text}' is no interface name; {expected}")
    return text


def parse_algorithm(text: str) -> str:
    """Read a congestion control's name; raises UnitError."""
    if not _ALGORITHM.fullmatch(text):
        expected = "expected lower-case letters, digits, '_' and '-', such as cubic"
        raise units.UnitError(f"'{text}' is no congestion control; {expected}")
    return text


def scalar(parse: Callable[[str], Any]) -> Callable[[object], Any]:
    """Wrap a parser of text so that a list or mapping in its place is refused with a sentence."""

    def validate(value: object) -> Any:
        if not isinstance(value, str):
            what = "a mapping" if isinstance(value, dict) else "a list"
            raise ValueError(f"expected one value, not {what}")
        return parse(str(value))

    return validate


def choice(what: str, *known: str) -> BeforeValidator:
    """Return a validator that takes one of a few words and names the nearest otherwise."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(unknown(what, text, known))
        return text

    return BeforeValidator(scalar(parse))


def _sentence(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; expected words")
    return " ".join(text.split())


def _snaplen(text: str) -> int:
    return units.parse_count(text.removesuffix("B"), least=64, most=262144, what="snaplen in bytes")


def _port(text: str) -> int:
    return units.parse_count(text, least=1, most=65535, what="port")


def _allow_zero_duration(text: str) -> float:
    return units.parse_duration(text, allow_zero=True)


def _within(text: str) -> str:
    if text.endswith("%"):
        units.parse_share(text)
    elif units.parse_number(text) < 0:
        raise units.UnitError(f"'{text}' is negative; expected a tolerance such as 2% or 5")
    return text


Sentence = Annotated[str, BeforeValidator(scalar(_sentence))]
Name = Annotated[str, BeforeValidator(scalar(parse_name))]
Interface = Annotated[str, BeforeValidator(scalar(parse_interface))]
Word = Annotated[str, BeforeValidator(scalar(str))]
Size = Annotated[int, BeforeValidator(scalar(units.parse_size))]
Rate = Annotated[int, BeforeValidator(scalar(units.parse_rate))]
Duration = Annotated[float, BeforeValidator(scalar(units.parse_duration))]
DurationOrZero = Annotated[float, BeforeValidator(scalar(_allow_zero_duration))]
Share = Annotated[float, BeforeValidator(scalar(units.parse_share))]
Number = Annotated[float, BeforeValidator(scalar(units.parse_number))]
Within = Annotated[str, BeforeValidator(scalar(_within))]
BufferField = Annotated[Buffer, BeforeValidator(scalar(parse_buffer))]
Snaplen = Annotated[int, BeforeValidator(scalar(_snaplen))]
Port = Annotated[int, BeforeValidator(scalar(_port))]
Positive = Annotated[int, BeforeValidator(scalar(lambda text: units.parse_count(text, least=1)))]
Seed = Annotated[int, BeforeValidator(scalar(lambda text: units.parse_count(text)))]
Free = Annotated[Any, PlainValidator(plain)]
