"""Field types: text as written in, typed value out, a message that says what was expected."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator

from samovar import units
from samovar.experiment.expressions.formula import Formula
from samovar.experiment.expressions.formula_values import read_amount
from samovar.experiment.expressions.values import Buffer as Buffer
from samovar.experiment.expressions.values import Directional, Mistakes
from samovar.experiment.keys import notation
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import plain

_NAME = re.compile(r"[A-Za-z0-9._-]+")
LONGEST_NAME = 63
LEAST_MEMORY_BYTES = 128_000_000
_INTERFACE = re.compile(r"[A-Za-z][A-Za-z0-9._@-]{0,14}")  # IFNAMSIZ is 16 on Linux and FreeBSD
MOST_FLOWS = 10_000  # of one line of traffic; every one has a port of its own
_ALGORITHM = re.compile(r"[a-z0-9_-]{1,32}")


class Strict(BaseModel):
    """A frozen model that refuses unknown keys; aliases are the keys of the YAML file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def parse_buffer(text: str) -> Buffer:
    """Read a queue size such as 546packets or 819KB; raises UnitError."""
    unit = text.lstrip("+-0123456789. ")
    if not unit:
        raise units.UnitError(
            f"{units.quoted(text)} has no unit; expected a buffer such as 546packets or 819KB"
        )
    if unit[0] in "pPfF":
        return Buffer(units.parse_packets(text), None)
    return Buffer(None, units.parse_size(text))


def parse_name(text: str) -> str:
    """Read a name of letters, digits, dot, underscore and hyphen; raises UnitError."""
    if not _NAME.fullmatch(text):
        expected = "expected letters, digits, '.', '_' and '-'"
        raise units.UnitError(f"{units.quoted(text)} is no name; {expected}")
    if text[0] in "._-":
        raise units.UnitError(f"{units.quoted(text)} is no name; expected a letter or digit first")
    if len(text) > LONGEST_NAME:
        raise units.UnitError(f"{units.quoted(text)} is no name; expected at most {LONGEST_NAME} characters")
    return text


def parse_interface(text: str) -> str:
    """Read an interface's name, at most 15 characters; raises UnitError."""
    if not _INTERFACE.fullmatch(text):
        expected = "expected one such as eth1 (at most 15 characters)"
        raise units.UnitError(f"{units.quoted(text)} is no interface name; {expected}")
    return text


def parse_algorithm(text: str) -> str:
    """Read a congestion control's name; raises UnitError."""
    if not _ALGORITHM.fullmatch(text):
        expected = "expected lower-case letters, digits, '_' and '-', such as cubic"
        raise units.UnitError(f"{units.quoted(text)} is no congestion control; {expected}")
    return text


def parse_places(value: object) -> tuple[str, ...]:
    """Read a host or role, or a list of them; raises UnitError."""
    many = value if isinstance(value, list) else [value]
    if not many or not all(isinstance(one, str) for one in many):
        raise units.UnitError("expected a host or role, or a list of them")
    return tuple(parse_name(str(one)) for one in many)


def parse_end(text: str) -> str:
    """Read a host, a role or a subnet such as 172.16.10.0/24; raises UnitError."""
    if "/" not in text and ":" not in text:
        return parse_name(text)
    try:
        return str(ip_network(text))
    except ValueError:
        raise units.UnitError(
            f"{units.quoted(text)} is no subnet; expected a host, a role or 172.16.10.0/24"
        ) from None


def scalar(parse: Callable[[str], Any]) -> Callable[[object], Any]:
    """Wrap a parser of text so that a list or mapping in its place is refused with a sentence."""

    def validate(value: object) -> Any:
        if not isinstance(value, str):
            what = "a mapping" if isinstance(value, dict) else "a list"
            raise ValueError(f"expected one value, not {what}")
        return parse(str(value))

    return validate


ONE_EACH = "expected {down: ..., up: ...}, one value for each direction"


def directional(parse: Callable[[str], Any], *, both: bool = False) -> Callable[[object], Any]:
    """Wrap a parser of text so that {down: ..., up: ...} is read too; with `both`, nothing else is."""

    def validate(value: object) -> Any:
        if not isinstance(value, dict):
            if both:
                raise ValueError(ONE_EACH)
            return scalar(parse)(value)
        mistakes = Mistakes()
        for key in value:
            if key not in ("down", "up"):
                mistakes.add((key,), unknown("direction", key, ("down", "up")), key=True)
        found = {
            way: mistakes.within((way,), scalar(parse), value[way]) for way in ("down", "up") if way in value
        }
        mistakes.raise_any()
        if not found or (both and len(found) < 2):
            raise ValueError(ONE_EACH if both else "is empty; expected {down: ..., up: ...}, one or both")
        return Directional(found.get("down"), found.get("up"))

    return validate


@dataclass(frozen=True)
class Choice(BeforeValidator):
    """A validator of one of a few words, which it names."""

    known: tuple[str, ...] = ()


def choice(what: str, *known: str) -> Choice:
    """Return a validator that takes one of a few words and names the nearest otherwise."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(unknown(what, text, known))
        return text

    return Choice(scalar(parse), known=known)


def _sentence(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; expected words")
    return " ".join(text.split())


def _snaplen(text: str) -> int:
    return units.parse_count(text.removesuffix("B"), least=64, most=262144, what="snaplen in bytes")


def _memory(text: str) -> int:
    memory_bytes = units.parse_size(text)
    if memory_bytes < LEAST_MEMORY_BYTES:
        least = units.format_bytes(LEAST_MEMORY_BYTES)
        raise units.UnitError(f"{units.quoted(text)} is too little for a kernel; expected {least} or more")
    return memory_bytes


def _port(text: str) -> int:
    return units.parse_count(text, least=1, most=65535, what="port")


def _allow_zero_duration(text: str) -> float:
    return units.parse_duration(text, allow_zero=True)


def _within(text: str) -> str:
    if text.endswith("%"):
        units.parse_share(text)
    elif units.parse_number(text) < 0:
        raise units.UnitError(f"{units.quoted(text)} is negative; expected a tolerance such as 2% or 5")
    return text


def parse_size(text: str) -> int | Formula:
    """Read a size or a formula for one, in bytes; raises UnitError."""
    return read_amount(text, "size", units.parse_size)


def parse_rate(text: str) -> int | Formula:
    """Read a rate or a formula for one, in bit/s; raises UnitError."""
    return read_amount(text, "rate", units.parse_rate)


def parse_duration(text: str) -> float | Formula:
    """Read a time above zero or a formula for one, in seconds; raises UnitError."""
    return read_amount(text, "duration", units.parse_duration)


def parse_delay(text: str) -> float | Formula:
    """Read a time that may be zero or a formula for one, in seconds; raises UnitError."""
    return read_amount(text, "delay", _allow_zero_duration)


def parse_share(text: str) -> float | Formula:
    """Read a share or a formula for one, as a fraction; raises UnitError."""
    return read_amount(text, "share", units.parse_share)


def parse_packets(text: str) -> int | Formula:
    """Read a count of packets or a formula for one; raises UnitError."""
    return read_amount(text, "packets", units.parse_packets)


def parse_buffer_amount(text: str) -> Buffer | Formula:
    """Read a queue size or a formula for one; raises UnitError."""
    return read_amount(text, "buffer", parse_buffer)


def parse_frequency(text: str) -> float | Formula:
    """Read how often something happens or a formula for it, per second; raises UnitError."""
    return read_amount(text, "frequency", units.parse_frequency)


def parse_flow_count(text: str) -> int:
    """Read how many flows one line means, none or up to MOST_FLOWS; raises UnitError."""
    return units.parse_count(text, most=MOST_FLOWS, what="number of flows")


def parse_positive(text: str) -> int:
    """Read a whole number from 1 up; raises UnitError."""
    return units.parse_count(text, least=1)


Sentence = Annotated[str, BeforeValidator(scalar(_sentence)), notation.SENTENCE]
Name = Annotated[str, BeforeValidator(scalar(parse_name)), notation.NAME]
Places = Annotated[
    tuple[str, ...], PlainValidator(parse_places, json_schema_input_type=str | tuple[str, ...]), notation.NAME
]
Interface = Annotated[str, BeforeValidator(scalar(parse_interface)), notation.INTERFACE]
Word = Annotated[str, BeforeValidator(scalar(str)), notation.WORD]
Size = Annotated[int, BeforeValidator(scalar(units.parse_size)), notation.SIZE]
Memory = Annotated[int, BeforeValidator(scalar(_memory)), notation.SIZE]
Duration = Annotated[float, BeforeValidator(scalar(units.parse_duration)), notation.DURATION]
Pause = Annotated[float, BeforeValidator(scalar(_allow_zero_duration)), notation.DURATION]
Number = Annotated[float, BeforeValidator(scalar(units.parse_number)), notation.NUMBER]
Within = Annotated[str, BeforeValidator(scalar(_within)), notation.WITHIN]
Snaplen = Annotated[int, BeforeValidator(scalar(_snaplen)), notation.SNAPLEN]
Port = Annotated[int, BeforeValidator(scalar(_port)), notation.PORT]
Positive = Annotated[int, BeforeValidator(scalar(parse_positive)), notation.POSITIVE]
FlowCount = Annotated[int, BeforeValidator(scalar(parse_flow_count)), notation.FLOW_COUNT]
Seed = Annotated[int, BeforeValidator(scalar(lambda text: units.parse_count(text))), notation.INTEGER]
Free = Annotated[Any, PlainValidator(plain)]

# Quantities that may be computed; the validator's own result is kept as it is.
SizeOrFormula = Annotated[
    int | Formula, PlainValidator(scalar(parse_size), json_schema_input_type=str), notation.SIZE_OR_FORMULA
]
TimeOrFormula = Annotated[
    float | Formula,
    PlainValidator(scalar(parse_duration), json_schema_input_type=str),
    notation.TIME_OR_FORMULA,
]
FrequencyOrFormula = Annotated[
    float | Formula,
    PlainValidator(scalar(parse_frequency), json_schema_input_type=str),
    notation.FREQUENCY_OR_FORMULA,
]
DelayOrFormula = Annotated[
    float | Formula,
    PlainValidator(scalar(parse_delay), json_schema_input_type=str),
    notation.DELAY_OR_FORMULA,
]
ShareOrFormula = Annotated[
    float | Formula,
    PlainValidator(scalar(parse_share), json_schema_input_type=str),
    notation.SHARE_OR_FORMULA,
]
_PerDirection = str | dict[str, str]
RatePerDirection = Annotated[
    int | Formula | Directional[int | Formula],
    PlainValidator(directional(parse_rate), json_schema_input_type=_PerDirection),
    notation.RATE_OR_FORMULA.both_ways(),
]
DelayPerDirection = Annotated[
    float | Formula | Directional[float | Formula],
    PlainValidator(directional(parse_delay), json_schema_input_type=_PerDirection),
    notation.DELAY_OR_FORMULA.both_ways(),
]
BothDelays = Annotated[
    Directional[float | Formula],
    PlainValidator(directional(parse_delay, both=True), json_schema_input_type=dict[str, str]),
    notation.DELAY_OR_FORMULA.both_ways(must=True),
]
SharePerDirection = Annotated[
    float | Formula | Directional[float | Formula],
    PlainValidator(directional(parse_share), json_schema_input_type=_PerDirection),
    notation.SHARE_OR_FORMULA.both_ways(),
]
PacketsPerDirection = Annotated[
    int | Formula | Directional[int | Formula],
    PlainValidator(directional(parse_packets), json_schema_input_type=_PerDirection),
    notation.PACKETS_OR_FORMULA.both_ways(),
]
BufferPerDirection = Annotated[
    Buffer | Formula | Directional[Buffer | Formula],
    PlainValidator(directional(parse_buffer_amount), json_schema_input_type=_PerDirection),
    notation.BUFFER_OR_FORMULA.both_ways(),
]
NamePerDirection = Annotated[
    str | Directional[str],
    PlainValidator(directional(parse_name), json_schema_input_type=_PerDirection),
    notation.NAME.both_ways(),
]
