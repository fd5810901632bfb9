"""How values are written, for editors and the reference: what a text is called and which texts it may be.

A form accepts every text that the parser beside it accepts, and refuses what can be told without
computing. A plain number may be a number of YAML. Patterns keep to what ECMA 262 and Python share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from samovar import units
from samovar.experiment.expressions.formula_names import NAMES, OF_FLOW
from samovar.experiment.expressions.formula_values import KINDS
from samovar.experiment.keys.dscp import NAMES as CODE_POINTS
from samovar.experiment.metrics import METRICS

SCALAR = ("string", "number")
_WHOLE = "(?:0|[1-9][0-9]{0,17})"
_NUMBER = rf"{_WHOLE}(?:\.[0-9]{{1,18}})?"
_NOT_ZERO = r"(?!0(?:\.0+)?(?![0-9.]))"
ONE_HOST, EITHER, EACH = "", "either", "each"


@dataclass(frozen=True, eq=False)
class Form:
    """One kind of text: its name, examples, JSON Schema, and how a value of it is written.

    `ways` says whether {down: ..., up: ...} may stand for it (EITHER), must (EACH), or may not; `base` is
    the form without formulas of one that takes them.
    """

    name: str
    meaning: str
    examples: tuple[str, ...]
    schema: Mapping[str, Any]
    write: Callable[[Any], str] = str
    ways: str = ONE_HOST
    base: Form | None = None

    def both_ways(self, must: bool = False) -> Form:
        """Return the form with a value for each direction of the path."""
        return replace(self, ways=EACH if must else EITHER)


def _units_of(kind: units.Kind) -> str:
    """Return a pattern of a kind's units, longest first; those of rates in any case."""
    spelt = sorted(kind.scales, key=lambda unit: (-len(unit), unit))
    if kind is units.RATE:
        spelt = ["".join(f"[{letter.upper()}{letter.lower()}]" for letter in unit) for unit in spelt]
    return f"(?:{'|'.join(spelt)})"


def _alternatives(texts: Iterable[str]) -> str:
    return "|".join(re.escape(text) for text in sorted(texts, key=lambda text: (-len(text), text)))


def _name(kind: str) -> str:
    """Return a pattern of the names in formulas; with a kind, of those that alone are a value of it."""
    wanted = [one.in_bytes() for one in KINDS[kind].dimensions] if kind else []
    names = [name for name, own in NAMES.items() if not kind or own.in_bytes() in wanted]
    keys = [key for key, own in OF_FLOW.items() if not kind or own.in_bytes() in wanted]
    of_flow = rf"traffic\.[A-Za-z0-9._-]+\.(?:{_alternatives(keys)})"
    every = [*([of_flow] if keys else []), *([_alternatives(names)] if names else [])]
    return f"(?:{'|'.join(every)})" if every else ""


def _formula(kind: str) -> str:
    """Return a pattern of formulas; whether parentheses close and sums fit together is not told by it."""
    quantities = "|".join(_units_of(one) for one in units.KINDS)
    number = r"[0-9]+(?:\.[0-9]+)?"
    opening = r"(?:(?:min *|max *)?\( *)"
    operand = rf"{opening}*(?:{number}(?: *{_name('')}|{quantities})?|{_name('')})(?: *\))*"
    known = _name(kind)
    alone = rf"(?:{number} *)?{known}|" if known else ""
    return rf"(?:{alone}(?={opening}|.*[-+*/]){operand}(?: *[-+*/,] *{operand})*)"


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
        "type": [
            "string"
        ],  # in a list, as editors then say what is expected of a number too, not its type alone
        "pattern": f"^(?:{pattern})$",
        "patternErrorMessage": expected,
        "errorMessage": expected,
    }
    return Form(name, meaning, examples, schema, write)


def counted(name: str = "") -> str:
    """Return a pattern of a number of one name that formulas know, such as 0.5 BDP."""
    return rf"^(?:{_NUMBER} *)?{_name(name)}$"


def computable(form: Form, kind: str, example: str) -> Form:
    """Return a form for which a formula may stand, of one of formula_values.KINDS."""
    pattern = str(form.schema["pattern"]).removeprefix("^(?:").removesuffix(")$")
    examples = (*form.examples, example)
    whole = _text(
        f"{form.name}, or a formula", f"{form.meaning}, or a formula", examples, f"{pattern}|{_formula(kind)}"
    )
    return replace(whole, write=form.write, base=form)


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
DRIFT = _quantity(units.DRIFT, "drift", False, units.format_drift)
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
SIZE_OR_FORMULA = computable(SIZE, "size", "1 BDP")
RATE_OR_FORMULA = computable(RATE, "rate", "path.rate / 2")
TIME_OR_FORMULA = computable(DURATION, "duration", "20 RTT")
DELAY_OR_FORMULA = computable(DELAY, "delay", "RTT / 2")
SHARE_OR_FORMULA = computable(SHARE, "share", "path.loss / 2")
PACKETS_OR_FORMULA = computable(PACKETS, "packets", "10packets + 5packets")
BUFFER_OR_FORMULA = computable(BUFFER, "buffer", "1 BDP")
FREQUENCY = _text(
    "frequency",
    "how often, with its unit (/s, /min, /h)",
    ("2/s",),
    r"(?!0+(?:\.0+)?/)[0-9]{1,18}(?:\.[0-9]{1,18})?/(?:s|min|h)",
    lambda per_s: f"{per_s:g}/s",
)
FREQUENCY_OR_FORMULA = computable(FREQUENCY, "frequency", "80% * RATE / traffic.short.size")
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
FLOW_COUNT = whole("integer", "a number of flows", ("4",), 0, 10_000)
SNAPLEN = whole("bytes", "a length in bytes", ("96",), 64, 262144, "B")
MTU = whole("bytes", "an MTU in bytes", ("1500",), 68, 65535, "B")
DESCRIPTORS = whole("integer", "a number of descriptors", ("256",), 1, 65536)
SWITCH = replace(words("switch", "on or off", ("on", "off")), write=lambda value: "on" if value else "off")
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
METRIC = words(
    "metric",
    "a metric",
    {name: f"{one.description} ({one.unit})" for name, one in METRICS.items()},
)
SENTENCE = Form(
    "words",
    "words",
    ("A short queue",),
    {
        "type": list(SCALAR),
        "pattern": r"^(?=[\s\S]*\S)[^\u001b]*$",
        "patternErrorMessage": "expected printable words",
    },
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
_IPV4 = r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$|/)|(?=$|/))){4}"
_IPV6 = r"[0-9A-Fa-f.:]*:[0-9A-Fa-f.:]*(?:%[^/]+)?"
_PREFIX = r"/(?:[0-9]{1,3}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})"
_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
END = name_of(
    "host, role or subnet",
    rf"^(?:[A-Za-z0-9][A-Za-z0-9._-]{{0,62}}|(?:{_IPV4}|{_IPV6})(?:{_PREFIX})?)$",
    ("sender", "172.16.10.0/24"),
    "a host, a role or a subnet",
)
ADDRESS = _text(
    "address/prefix",
    "an address with the length of its prefix",
    ("172.16.10.2/24",),
    rf"(?:{_IPV4}|{_IPV6}){_PREFIX}",
)
SUBNET = _text("subnet", "a subnet", ("172.16.10.0/24",), rf"(?:{_IPV4}|{_IPV6})(?:{_PREFIX})?")
CONTROL_ADDRESS = name_of(
    "address or host name",
    rf"^(?:{_IPV4}|{_IPV6}|(?![0-9.]+$)(?=.{{1,253}}$){_HOST}(?:\.{_HOST})*)$",
    ("10.64.0.11", "alpha.example.org"),
    "an address or a host name",
)
USER = name_of("user", r"^[A-Za-z_][A-Za-z0-9_.-]{0,31}$", ("root",), "a user's name")
RELEASE = name_of("release", r"^[0-9]{1,4}(?:\.[0-9]{1,4}){0,3}$", ("11.4", "13.2"), "a release of a system")
