"""How values are written, for editors and the reference: what a text is called and which texts it may be.

A form accepts every text that the parser beside it accepts, and refuses what can be told without
computing. A plain number may be a number of YAML. Patterns keep to what ECMA 262 and Python share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from samovar import units
from samovar.definition.dscp import NAMES as CODE_POINTS
from samovar.definition.formula_names import NAMES
from samovar.definition.metrics import METRICS

SCALAR = ("string", "number")
_WHOLE = "(?:0|[1-9][0-9]{0,17})"
_NUMBER = rf"{_WHOLE}(?:\.[0-9]{{1,18}})?"
_NOT_ZERO = r"(?!0(?:\.0+)?(?![0-9.]))"
ONE_HOST, EITHER, EACH = "", "either", "each"


@dataclass(frozen=True, eq=False)
class Form:
    """One kind of text: its name, examples, JSON Schema, and how a value of it is written.

    `ways` says whether {down: ..., up: ...} may stand for it (EITHER), must (EACH), or may not.
    """

    name: str
    meaning: str
    examples: tuple[str, ...]
    schema: Mapping[str, Any]
    write: Callable[[Any], str] = str
    ways: str = ONE_HOST
    computed: bool = False

    def both_ways(self, must: bool = False) -> Form:
        """Return the form with a value for each direction of the path."""
        return replace(self, ways=EACH if must else EITHER)


def _units_of(kind: units.Kind) -> str:
    """Return a pattern of a kind's units, longest first; those of rates in any case."""
    spelt = sorted(kind.scales, key=lambda unit: (-len(unit), unit))
    if kind is units.RATE:
        spelt = ["".join(f"[{letter.upper()}{letter.lower()}]" for letter in unit) for unit in spelt]
    return f"(?:{'|'.join(spelt)})"


def _formula() -> str:
    """Return a pattern of formulas; whether parentheses close and dimensions fit is not told by it."""
    names = "|".join(re.escape(name) for name in sorted(NAMES, key=lambda name: (-len(name), name)))
    name = rf"(?:traffic\.[A-Za-z0-9._-]*[A-Za-z0-9_]|{names})"
    quantities = "|".join(_units_of(kind) for kind in units.KINDS)
    number = rf"[0-9]+(?:\.[0-9]+)?(?: *{name}|{quantities})?"
    opening = r"(?:(?:min *|max *)?\( *)*"
    operand = rf"{opening}(?:{number}|{name})(?: *\))*"
    telling = r"(?=.*(?:[-+*/()]|RTT|RATE|BDP|BUFFER|MTU|[a-z]\.[a-z]))"
    return rf"(?:{telling}{operand}(?: *[-+*/,] *{operand})*)"


FORMULA = _formula()


def _quantity(kind: units.Kind, name: str, may_be_zero: bool, write: Callable[[Any], str]) -> Form:
    units_ = ", ".join(unit for unit in kind.scales if unit not in ("kB", "packet"))
    pattern = rf"{'' if may_be_zero else _NOT_ZERO}{_NUMBER}{_units_of(kind)}"
    zero = "" if may_be_zero else " above zero"
    meaning = f"a {kind.name}{zero} with its unit ({units_})"
    return _text(name, meaning, (kind.example,), pattern, write)


def _text(
    name: str, meaning: str, examples: tuple[str, ...], pattern: str, write: Callable[[Any], str] = str
) -> Form:
    expected = f"expected {meaning}, such as {examples[0]}"
    schema = {
        "type": "string",
        "pattern": f"^(?:{pattern})$",
        "patternErrorMessage": expected,
        "errorMessage": expected,
    }
    return Form(name, meaning, examples, schema, write)


def computable(form: Form, example: str) -> Form:
    """Return a form for which a formula may stand."""
    pattern = str(form.schema["pattern"]).removeprefix("^(?:").removesuffix(")$")
    whole = _text("", f"{form.meaning}, or a formula", (*form.examples, example), f"{pattern}|{FORMULA}")
    return Form(
        f"{form.name}, or a formula", whole.meaning, whole.examples, whole.schema, form.write, computed=True
    )


def whole(name: str, meaning: str, examples: tuple[str, ...], least: int, most: int, unit: str = "") -> Form:
    """Return the form of a bare whole number between two; `unit` may stand behind it in a text."""
    bounds = f"from {least} up" if most == units.LARGEST else f"from {least} to {most}"
    expected = f"expected {meaning}, {bounds}, such as {examples[0]}"
    schema: dict[str, Any] = {"type": ["integer", "string"], "minimum": least}
    if most != units.LARGEST:
        schema["maximum"] = most
    pattern = rf"^{'[1-9]' if least else '(?:0|[1-9])'}[0-9]{{0,17}}{f'{unit}?' if unit else ''}$"
    if not least:
        pattern = rf"^{_WHOLE}{f'{unit}?' if unit else ''}$"
    schema |= {"pattern": pattern, "patternErrorMessage": expected, "errorMessage": expected}
    return Form(name, f"{meaning}, {bounds}", examples, schema)


def words(name: str, meaning: str, known: Mapping[str, str] | tuple[str, ...]) -> Form:
    """Return the form of one of a few words, with what each of them means where that is known."""
    schema: dict[str, Any] = {"enum": list(known)}
    if isinstance(known, Mapping):
        schema["enumDescriptions"] = list(known.values())
    return Form(name, meaning, tuple(list(known)[:1]), schema)


def name_of(what: str, pattern: str, examples: tuple[str, ...], meaning: str) -> Form:
    """Return the form of a name, which YAML may take for a number."""
    expected = f"expected {meaning}, such as {examples[0]}"
    schema = {"type": list(SCALAR), "pattern": pattern}
    return Form(
        what, meaning, examples, {**schema, "patternErrorMessage": expected, "errorMessage": expected}
    )


SIZE = _quantity(units.SIZE, "size", False, units.format_bytes)
RATE = _quantity(units.RATE, "rate", False, units.format_rate)
DURATION = _quantity(units.DURATION, "time", False, units.format_duration)
DELAY = _quantity(units.DURATION, "time, zero too", True, units.format_duration)
PACKETS = _quantity(units.PACKETS, "count of packets", False, lambda count: f"{count}packets")
SHARE = _text(
    "share",
    "a share with its unit (%), at most 100%",
    ("2%",),
    r"(?:100(?:\.0{1,18})?|[1-9]?[0-9](?:\.[0-9]{1,18})?)%",
    units.format_share,
)
BUFFER = _text(
    "buffer",
    "a size of a queue with its unit (packets, B, KB, MB, KiB …)",
    ("546packets", "819KB"),
    rf"{_NOT_ZERO}{_NUMBER}(?:{_units_of(units.PACKETS)}|{_units_of(units.SIZE)})",
)
SIZE_OR_FORMULA = computable(SIZE, "1 BDP")
RATE_OR_FORMULA = computable(RATE, "path.rate / 2")
TIME_OR_FORMULA = computable(DURATION, "20 RTT")
DELAY_OR_FORMULA = computable(DELAY, "RTT / 2")
SHARE_OR_FORMULA = computable(SHARE, "path.loss / 2")
PACKETS_OR_FORMULA = computable(PACKETS, "10packets + 5packets")
BUFFER_OR_FORMULA = computable(BUFFER, "1 BDP")
FREQUENCY = _text(
    "frequency",
    "how often, with its unit (/s, /min, /h)",
    ("2/s",),
    r"(?!0+(?:\.0+)?/)[0-9]{1,18}(?:\.[0-9]{1,18})?/(?:s|min|h)",
    lambda per_s: f"{per_s:g}/s",
)
NUMBER = Form(
    "number",
    "a number without a unit",
    ("546", "0.98"),
    {
        "type": ["number", "string"],
        "pattern": rf"^-?{_NUMBER}$",
        "patternErrorMessage": "expected digits such as 546 or 0.98, without a unit",
        "errorMessage": "expected digits such as 546 or 0.98, without a unit",
    },
    lambda number: f"{number:g}",
)
WITHIN = Form(
    "tolerance",
    "a share or a number in the metric's unit",
    ("2%", "5"),
    {
        "type": ["number", "string"],
        "minimum": 0,
        "pattern": rf"{SHARE.schema['pattern']}|^{_NUMBER}$",
        "patternErrorMessage": "expected a tolerance such as 2% or 5",
        "errorMessage": "expected a tolerance such as 2% or 5",
    },
)
INTEGER = whole("integer", "a whole number", ("1",), 0, units.LARGEST)
POSITIVE = whole("integer", "a whole number", ("5",), 1, units.LARGEST)
PORT = whole("port", "a port", ("5001",), 1, 65535)
FLOW_COUNT = whole("integer", "a number of flows", ("4",), 1, 10_000)
SNAPLEN = whole("bytes", "a length in bytes", ("96",), 64, 262144, "B")
MTU = whole("bytes", "an MTU in bytes", ("1500",), 68, 65535, "B")
DESCRIPTORS = whole("integer", "a number of descriptors", ("256",), 1, 65536)
SWITCH = words("switch", "on or off", ("on", "off"))
DSCP = Form(
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
)
METRIC = words("metric", "a metric of the analysis", tuple(METRICS))
SENTENCE = Form(
    "words",
    "words",
    ("A short queue",),
    {"type": list(SCALAR), "pattern": r"\S", "patternErrorMessage": "expected words"},
)
WORD = Form("text", "one value", ("1",), {"type": [*SCALAR, "boolean"]})
NAME = name_of(
    "name",
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
    ("bulk",),
    "a name of letters, digits, '.', '_' and '-'",
)
INTERFACE = name_of(
    "interface",
    r"^[A-Za-z][A-Za-z0-9._@-]{0,14}$",
    ("eth1",),
    "an interface's name, at most 15 characters",
)
ALGORITHM = name_of(
    "congestion control",
    r"^[a-z0-9_-]{1,32}$",
    ("cubic", "newreno"),
    "a congestion control: lower-case letters, digits, '_' and '-'",
)
END = name_of(
    "host, role or subnet",
    r"^(?:[A-Za-z0-9][A-Za-z0-9._-]{0,62}|[0-9A-Fa-f.:]+(?:/[0-9]{1,3}(?:\.[0-9]{1,3}){0,3})?)$",
    ("sender", "172.16.10.0/24"),
    "a host, a role or a subnet",
)
ADDRESS = _text(
    "address/prefix",
    "an address with the length of its prefix",
    ("172.16.10.2/24",),
    r"[0-9A-Fa-f.:]+(?:%[^/]+)?/[0-9]{1,3}(?:\.[0-9]{1,3}){0,3}",
)
SUBNET = _text(
    "subnet",
    "a subnet",
    ("172.16.10.0/24",),
    r"[0-9A-Fa-f.:]+(?:/[0-9]{1,3}(?:\.[0-9]{1,3}){0,3})?",
)
CONTROL_ADDRESS = name_of(
    "address or host name",
    r"^[A-Za-z0-9:](?:[A-Za-z0-9.:%-]{0,251}[A-Za-z0-9:])?$",
    ("10.64.0.11", "alpha.example.org"),
    "an address or a host name",
)
USER = name_of("user", r"^[A-Za-z_][A-Za-z0-9_.-]{0,31}$", ("root",), "a user's name")
RELEASE = name_of("release", r"^[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$", ("11.4", "13.2"), "a release of a system")
