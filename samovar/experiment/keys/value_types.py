"""Types of values such as rates and sizes: each with parser, writer, JSON Schema pattern and description.

A type is the metadata of a field (`Annotated[int, RATE]`); the loader, editors and the reference use it. The
type's pattern matches every text that its parser accepts, and some texts that the parser refuses. Patterns
use only syntax that is common to ECMA 262 and Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from samovar import units
from samovar.errors import unknown
from samovar.experiment.formula import NAMES, read_amount
from samovar.experiment.values import Buffer, Directional, PerHost, read_distribution, read_each
from samovar.units import UnitError, quoted

SCALAR = ("string", "number")
MOST_FLOWS = 10_000  # of one entry of traffic, as each flow needs a port
EACH_DIRECTION = "expected {down: ..., up: ...}, one value for each direction"

_WHOLE = "(?:0|[1-9][0-9]{0,17})"
_NUMBER = rf"{_WHOLE}(?:\.[0-9]{{1,18}})?"
_NOT_ZERO = r"(?!0(?:\.0+)?(?![0-9.]))"

Parser = Callable[[str], Any]
Writer = Callable[[Any], str]


class Form(Enum):
    """Forms of a value in files: single, list, per host and so on.

    The reference shows the text of each form.
    """

    ONE = "one value"
    LIST = "one value, or a list"
    PER_HOST = "one value, or one per host or role"
    PER_DIRECTION = "one value, or `{down: …, up: …}`"
    BOTH_DIRECTIONS = "one value in `{down: …, up: …}`"
    RANDOM = "one value, or [random](experiment.md#random-values)"


ONE, LIST, PER_HOST, PER_DIRECTION, BOTH_DIRECTIONS, RANDOM = Form


@dataclass(frozen=True, eq=False)
class ValueType:
    """One type of value: its name, meaning and examples for people, its JSON Schema, parser and writer.

    If the type accepts formulas, `plain` is the same type without formulas. If it accepts only certain words,
    `choices` has these words.
    """

    name: str
    meaning: str
    examples: tuple[str, ...]
    schema: Mapping[str, Any]
    parse: Parser
    write: Writer = str
    form: Form = Form.ONE
    plain: ValueType | None = None
    choices: tuple[str, ...] = ()

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Tell pydantic to validate fields of this type with `read`."""
        return core_schema.no_info_plain_validator_function(self.read)

    def of(self, form: Form) -> ValueType:
        """Return the type with another form, such as PER_HOST."""
        return replace(self, form=form)

    def read(self, written: object) -> Any:
        """Convert a value from a file.

        Raises ValueError, or its subclass ValidationError, which tells where in the value each error is.
        """
        if self.form is Form.LIST:
            return self._read_list(written)
        if self.form is Form.BOTH_DIRECTIONS:
            return self._read_directions(written)
        if isinstance(written, dict):
            if self.form is Form.RANDOM:
                return read_distribution(written, self._read_one)
            if self.form is Form.PER_HOST:
                return self._read_hosts(written)
            if self.form is Form.PER_DIRECTION:
                return self._read_directions(written)
        return self._read_one(written)

    def _read_one(self, written: object) -> Any:
        if not isinstance(written, str):
            other = "a mapping" if isinstance(written, dict) else "a list"
            raise ValueError(f"expected one value, not {other}")
        return self.parse(str(written))

    def _read_list(self, written: object) -> tuple[Any, ...]:
        many = written if isinstance(written, list) else [written]
        if not many or not all(isinstance(one, str) for one in many):
            raise UnitError(f"expected {self.meaning}, or a list of them")
        return tuple(self.parse(str(one)) for one in many)

    def _read_hosts(self, written: Mapping[Any, object]) -> PerHost[Any]:
        if not written:
            raise ValueError("is empty; expected one value, or one per host or role")
        if written.keys() <= {"down", "up"}:
            raise ValueError("a host has no directions; expected one value, or one per host or role")
        return PerHost(read_each(written, self._read_one))

    def _read_directions(self, written: object) -> Directional[Any]:
        if not isinstance(written, dict):
            raise ValueError(EACH_DIRECTION)
        found = read_each(written, self._read_one, "direction", ("down", "up"))
        if self.form is Form.BOTH_DIRECTIONS and len(found) < 2:
            raise ValueError(EACH_DIRECTION)
        if not found:
            raise ValueError("is empty; expected {down: ..., up: ...}, one or both")
        return Directional(found.get("down"), found.get("up"))


# Parsers of values that are not quantities.

_INTERFACE = "[A-Za-z][A-Za-z0-9._@-]{0,14}"  # IFNAMSIZ is 16 on Linux and FreeBSD
CODE_POINTS: Mapping[str, int] = {
    "DF": 0,
    "LE": 1,
    "EF": 46,
    "VA": 44,
    **{f"CS{one}": one * 8 for one in range(8)},
    **{f"AF{one}{drop}": one * 8 + drop * 2 for one in range(1, 5) for drop in range(1, 4)},
}
"""DiffServ code points: RFC 2474 (CS), RFC 2597 (AF), RFC 3246 (EF), RFC 5865 (VA), RFC 8622 (LE)."""


def parse_buffer(text: str) -> Buffer:
    """Read a queue size such as 546packets or 819KB; raises UnitError."""
    unit = text.lstrip("+-0123456789. ")
    if not unit:
        raise UnitError(f"{quoted(text)} has no unit; expected a buffer such as 546packets or 819KB")
    if unit[0] in "pPfF":
        return Buffer(units.parse_packets(text), None)
    return Buffer(None, units.parse_size(text))


def _dscp(text: str) -> int:
    if text.isdigit():
        return units.parse_count(text, most=63, what="code point")
    if text not in CODE_POINTS:
        raise UnitError(f"{unknown('code point', text, CODE_POINTS)}, or 0 to 63")
    return CODE_POINTS[text]


def _sentence(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; expected words")
    return " ".join(text.split())


def _within(text: str) -> str:
    if text.endswith("%"):
        units.parse_share(text)
    elif units.parse_number(text) < 0:
        raise UnitError(f"{quoted(text)} is negative; expected a tolerance such as 2% or 5")
    return text


# Functions that make types.


def text_type(
    name: str,
    meaning: str,
    examples: tuple[str, ...],
    pattern: str,
    parse: Parser,
    write: Writer = str,
    **schema: Any,
) -> ValueType:
    """Return a type with a pattern. Editors show `expected` for texts that do not match."""
    expected = schema.pop("expected", f"expected {meaning}, such as {examples[0]}")
    # `type` is a list, since editors then show errorMessage instead of their own `Incorrect type`.
    whole = {"type": ["string"], **schema, "pattern": f"^(?:{pattern})$"}
    whole |= {"patternErrorMessage": expected, "errorMessage": expected}
    return ValueType(name, meaning, examples, whole, parse, write)


def named(
    name: str, meaning: str, examples: tuple[str, ...], pattern: str, parse: Parser | None = None
) -> ValueType:
    """Return a type of names, including names that YAML reads as numbers.

    Without a parser, every text that matches the pattern is accepted. If the parser raises a plain
    ValueError, the message is made of `meaning` and an example.
    """

    def read(text: str) -> Any:
        try:
            if parse is None and not re.fullmatch(pattern, text):
                raise ValueError
            return text if parse is None else parse(text)
        except UnitError:
            raise
        except ValueError:
            what, _, rest = meaning.partition(": ")
            expected = f"{rest}, such as {examples[0]}" if rest else f"one such as {examples[0]}"
            raise UnitError(f"{quoted(text)} is not {what}; expected {expected}") from None

    return text_type(name, meaning, examples, pattern, read, type=list(SCALAR))


def whole_number(
    name: str, meaning: str, example: str, least: int = 0, most: int = units.LARGEST, unit: str = ""
) -> ValueType:
    """Return a type of whole numbers from `least` to `most`. In files, `unit` may follow the number."""
    bounds = f"from {least} up" if most == units.LARGEST else f"from {least} to {most}"
    pattern = rf"{'[1-9][0-9]{0,17}' if least else _WHOLE}{f'{unit}?' if unit else ''}"
    limits: dict[str, Any] = {"minimum": least} | ({} if most == units.LARGEST else {"maximum": most})
    what = meaning.partition(" ")[2]

    def parse(text: str) -> int:
        number = re.sub(rf"(?<=\d){unit}$", "", text)  # the message about 1500KB must not quote 1500K
        return units.parse_count(number, least=least, most=most, what=what)

    types = ["integer", "string"]
    return text_type(name, f"{meaning}, {bounds}", (example,), pattern, parse, type=types, **limits)


def choice(what: str, *known: str) -> ValueType:
    """Return a type that accepts only the words in `known`. Messages suggest the most similar word."""

    def parse(text: str) -> str:
        if text not in known:
            raise ValueError(unknown(what, text, known))
        return text

    return ValueType(
        what, f"one of {', '.join(known)}", known[:1], {"enum": list(known)}, parse, choices=known
    )


def _units_of(kind: units.Kind) -> str:
    """Return a regular expression for the units of a kind, longest first. Letter case of rates is ignored."""
    spelt = sorted(kind.scales, key=lambda unit: (-len(unit), unit))
    if kind is units.RATE:
        spelt = ["".join(f"[{letter.upper()}{letter.lower()}]" for letter in unit) for unit in spelt]
    return f"(?:{'|'.join(spelt)})"


def _quantity(
    name: str, kind: units.Kind, parse: Callable[..., Any], write: Writer, *, zero: bool = False
) -> ValueType:
    known = ", ".join(unit for unit in kind.scales if unit not in ("kB", "packet"))
    meaning = f"a {kind.name}{'' if zero else ' above zero'} with its unit ({known})"
    pattern = rf"{'' if zero else _NOT_ZERO}{_NUMBER}{_units_of(kind)}"
    read = partial(parse, allow_zero=True) if zero else parse
    return text_type(name, meaning, (kind.example,), pattern, read, write)


_NAMES = "|".join([*map(re.escape, sorted(NAMES, key=len, reverse=True)), r"traffic\.[A-Za-z0-9._-]+"])
_TOKEN = rf"[-+*/(), ]|[0-9.]+(?![0-9.])[A-Za-z%]*(?![A-Za-z%])|(?:min|max|{_NAMES})(?![A-Za-z0-9._-])"
_FORMULA = rf"(?=[A-Za-z0-9(])(?=.*[-+*/(]|.*(?:{_NAMES}))(?:{_TOKEN})+"
"""Numbers, names and operators, with at least one name or operator; formula.py checks the syntax."""


def _computable(plain_type: ValueType, kind: str, example: str) -> ValueType:
    """Return a type that accepts a value of `plain_type`, or a formula that computes one.

    `kind`, a key of formula.KINDS, is the kind of value that formulas compute.
    """
    return replace(
        text_type(
            f"{plain_type.name}, or a formula",
            f"{plain_type.meaning}, or a formula",
            (*plain_type.examples, example),
            f"{_pattern(plain_type)}|{_FORMULA}",
            lambda text: read_amount(text, kind, plain_type.parse),
            plain_type.write,
        ),
        plain=plain_type,
    )


def _pattern(value_type: ValueType) -> str:
    return str(value_type.schema["pattern"])[1:-1]


# The types.

SIZE = _quantity("size", units.SIZE, units.parse_size, units.format_bytes)
SIZE_OR_ZERO = _quantity("size or zero", units.SIZE, units.parse_size, units.format_bytes, zero=True)
RATE = _quantity("rate", units.RATE, units.parse_rate, units.format_rate)
DURATION = _quantity("time", units.DURATION, units.parse_duration, units.format_duration)
DELAY = _quantity("time or zero", units.DURATION, units.parse_duration, units.format_duration, zero=True)
PACKETS = _quantity("count of packets", units.PACKETS, units.parse_packets, lambda count: f"{count}packets")
DRIFT = _quantity("drift", units.DRIFT, units.parse_drift, units.format_drift)
SHARE = text_type(
    "share",
    "a share with its unit (%), at most 100%",
    ("2%",),
    r"(?:100(?:\.0{1,18})?|[1-9]?[0-9](?:\.[0-9]{1,18})?)%",
    units.parse_share,
    units.format_share,
)
BUFFER = text_type(
    "buffer",
    "a size of a queue with its unit (packets, B, KB, MB, KiB …)",
    ("546packets", "819KB"),
    f"{_pattern(PACKETS)}|{_pattern(SIZE)}",
    parse_buffer,
)
FREQUENCY = text_type(
    "frequency",
    "a frequency with its unit (/s, /min, /h)",
    ("2/s",),
    r"(?!0+(?:\.0+)?/)[0-9]{1,18}(?:\.[0-9]{1,18})?/(?:s|min|h)",
    units.parse_frequency,
)
SIZE_OR_FORMULA = _computable(SIZE, "size", "1 BDP")
SIZE_OR_ZERO_OR_FORMULA = _computable(SIZE_OR_ZERO, "size", "1 BDP")
RATE_OR_FORMULA = _computable(RATE, "rate", "path.rate / 2")
TIME_OR_FORMULA = _computable(DURATION, "duration", "20 RTT")
DELAY_OR_FORMULA = _computable(DELAY, "delay", "RTT / 2")
SHARE_OR_FORMULA = _computable(SHARE, "share", "path.loss / 2")
PACKETS_OR_FORMULA = _computable(PACKETS, "packets", "10packets + 5packets")
BUFFER_OR_FORMULA = _computable(BUFFER, "buffer", "1 BDP")
FREQUENCY_OR_FORMULA = _computable(FREQUENCY, "frequency", "80% * RATE / traffic.short.size")

NUMBER = text_type(
    "number",
    "a number without a unit",
    ("546", "0.98"),
    rf"-?{_NUMBER}",
    units.parse_number,
    type=["number", "string"],
    expected="expected digits such as 546 or 0.98, without a unit",
)
WITHIN = text_type(
    "tolerance",
    "a share, or a number in the metric's unit",
    ("2%", "5"),
    rf"{_pattern(SHARE)}|{_NUMBER}",
    _within,
    type=["number", "string"],
    minimum=0,
)
INTEGER = whole_number("integer", "a whole number", "1")
POSITIVE = whole_number("integer", "a whole number", "5", 1)
PORT = whole_number("port", "a port", "5001", 1, 65535)
FLOW_COUNT = whole_number("integer", "a number of flows", "4", 0, MOST_FLOWS)
SNAPLEN = whole_number("bytes", "a snaplen in bytes", "96", 64, 262144, "B")
MTU = whole_number("bytes", "an MTU in bytes", "1500", 68, 65535, "B")
DESCRIPTORS = whole_number("integer", "a number of descriptors", "256", 1, 65536)
SWITCH = replace(
    choice("switch", "on", "off"),
    meaning="on or off",
    parse=units.parse_switch,
    write=lambda value: "on" if value else "off",
)
METRIC = ValueType("metric", "a metric", ("throughput_bps",), {"type": "string"}, str)
DSCP = ValueType(
    "code point",
    "a DiffServ code point: a name, or 0 to 63",
    ("EF", "46"),
    {
        "anyOf": [
            {"enum": list(CODE_POINTS)},
            {"type": ["integer", "string"], "minimum": 0, "maximum": 63, "pattern": "^[0-9]{1,2}$"},
        ],
        "errorMessage": "expected a code point such as EF, AF11 or CS1, or 0 to 63",
    },
    _dscp,
)
SENTENCE = ValueType(
    "words",
    "words",
    ("A short queue",),
    {
        "type": list(SCALAR),
        "pattern": r"^(?=[\s\S]*\S)[^\u001b]*$",
        "patternErrorMessage": "expected printable words",
    },
    _sentence,
)
WORD = ValueType("text", "one value", ("1",), {"type": [*SCALAR, "boolean"]}, str)
_NAME_PATTERN = "[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NAME = named(
    "name",
    "a name: at most 63 letters, digits, '.', '_' and '-', the first a letter or digit",
    ("bulk",),
    _NAME_PATTERN,
)
INTERFACE = named("interface", "an interface name: at most 15 characters", ("eth1",), _INTERFACE)
ALGORITHM = named(
    "congestion control",
    "a congestion control: lower-case letters, digits, '_' and '-'",
    ("cubic", "newreno"),
    "[a-z0-9_-]{1,32}",
)
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
IP = rf"(?:{_BYTE}(?:\.{_BYTE}){{3}}(?=$|/)|[0-9A-Fa-f.:]*:[0-9A-Fa-f.:]*(?:%[^/]+)?)"
PREFIX = r"/[0-9]{1,3}(?:(?:\.[0-9]{1,3}){3})?"
END = named(
    "host, role or subnet",
    "a host, a role or a subnet",
    ("sender", "172.16.10.0/24"),
    rf"(?:{_NAME_PATTERN}|{IP}(?:{PREFIX})?)",
    lambda text: str(ip_network(text)) if "/" in text or ":" in text else NAME.parse(text),
)
PLACES = replace(NAME, meaning="a host or role", form=Form.LIST)

Sentence = Annotated[str, SENTENCE]
Name = Annotated[str, NAME]
Names = Annotated[tuple[str, ...], NAME.of(Form.LIST)]
Places = Annotated[tuple[str, ...], PLACES]
Interface = Annotated[str, INTERFACE]
Word = Annotated[str, WORD]
Size = Annotated[int, SIZE]
Duration = Annotated[float, DURATION]
Pause = Annotated[float, DELAY]
Share = Annotated[float, SHARE]
Number = Annotated[float, NUMBER]
Port = Annotated[int, PORT]
Positive = Annotated[int, POSITIVE]
Seed = Annotated[int, INTEGER]
