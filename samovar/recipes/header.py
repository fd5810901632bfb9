"""What a recipe says of itself: the YAML between its first line `{#---` and a line `---#}`, typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field

from samovar.errors import DefinitionError, Problem
from samovar.experiment import Positive, Sentence, Strict, Word, choice, parse_parameter, parse_type, scalar
from samovar.experiment.checks.validate import Checked, validate
from samovar.experiment.yaml.tree import parse_yaml
from samovar.recipes.sudo_rules import checked_pattern
from samovar.units import UnitError, parse_count, parse_duration

_FORM = re.compile(r"\A\{#---(?P<yaml>\n.*?\n)---#\}(?:\n|\Z)", re.DOTALL)
PathFeature = Literal["jitter", "reorder", "duplicate", "loss_burst"]


def _one_number(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"'{pattern}' is no regular expression: {error}") from error
    if groups != 1:
        raise ValueError("expected one group in parentheses, around the number")
    return pattern


def _step(text: str) -> str:
    parse_duration(text)
    return text


def _offset(text: str) -> int:
    return parse_count(text, most=65535, what="port")


NumberPattern = Annotated[Word, AfterValidator(_one_number)]
RootPattern = Annotated[Word, AfterValidator(checked_pattern)]
Type = Annotated[Word, AfterValidator(parse_type)]
Step = Annotated[Word, AfterValidator(_step)]
Offset = Annotated[int, BeforeValidator(scalar(_offset))]


class Parameter(Strict):
    """One value that a recipe takes."""

    type: Type
    description: Sentence
    unit: Word | None = None
    default: Word | None = None
    choices: tuple[Word, ...] = ()


class CountPatterns(Strict):
    """How a generator's client says what bytes of data it sent, and its server received, as patterns.

    The last match counts; its group is a number of units of so many bytes. `cc` finds the congestion control
    that the sender's socket had, where the client tells it.
    """

    sent: NumberPattern
    received: NumberPattern | None = None
    unit_bytes: Positive = 1
    cc: NumberPattern | None = None

    def read(self, text: str) -> ByteCounts | None:
        """Read a client's output; None where it tells nothing, what is not told is as sent."""
        sent = self._last(self.sent, text)
        received = self._last(self.received, text) if self.received else sent
        return ByteCounts(sent, received) if sent is not None and received is not None else None

    def congestion_control(self, text: str) -> str | None:
        """Read the congestion control that a client's socket had; None where it tells none."""
        found = re.findall(self.cc, text) if self.cc else []
        return str(found[-1]) if found else None

    def _last(self, pattern: str, text: str) -> int | None:
        found = re.findall(pattern, text)
        return round(float(found[-1]) * self.unit_bytes) if found else None


class ByteCounts(NamedTuple):
    """What a generator counted of a flow's data."""

    sent_bytes: int
    received_bytes: int


class Header(Strict):
    """What a recipe says of itself before anything is rendered."""

    summary: Sentence
    needs: tuple[Word, ...] = Field(default=(), description="programs that must be on the host")
    client_needs: tuple[Word, ...] = Field(default=(), description="programs that a generator's client needs")
    server_needs: tuple[Word, ...] = Field(default=(), description="programs that a generator's server needs")
    modules: tuple[Word, ...] = Field(
        default=(), description="kernel features (qdisc names) that must be on the host"
    )
    tracepoints: tuple[Word, ...] = Field(default=(), description="tracepoints that the kernel must have")
    interfaces_need: tuple[
        Annotated[Literal["ring", "pause"], choice("need of interfaces", "ring", "pause")], ...
    ] = Field(default=(), description="what each interface must have: a transmit ring, flow control")
    brings: tuple[Word, ...] = Field(
        default=(), description="programs that functions of a step stand for where they are missing"
    )
    root: tuple[RootPattern, ...] = Field(
        default=(), description="what runs as root: one pattern for each kind of command"
    )
    root_lasting: tuple[RootPattern, ...] = Field(
        default=(), description="what runs as root until it is ended, bounded by timeout(1)"
    )
    root_login: Sentence | None = Field(
        default=None, description="why no list of commands will do and root must log in"
    )
    lacks: tuple[
        Annotated[PathFeature, choice("key of a path", "jitter", "reorder", "duplicate", "loss_burst")], ...
    ] = Field(default=(), description="what of a path a bottleneck's recipe cannot do")
    delay_step: Step | None = Field(
        default=None, description="what a bottleneck's round-trip times are whole multiples of, such as 1ms"
    )
    duration_step: Step | None = Field(
        default=None, description="what a generator's durations are whole multiples of, such as 1s"
    )
    parameters: dict[Word, Parameter] = Field(default_factory=dict)
    leaves: tuple[Word, ...] = Field(default=(), description="traces left in the trial's folder")
    change: Annotated[
        Literal["none", "interface-reset", "reboot"], choice("change", "none", "interface-reset", "reboot")
    ] = "none"
    transport: Annotated[Literal["tcp", "udp", "icmp"], choice("transport", "tcp", "udp", "icmp")] = Field(
        default="tcp", description="what a generator sends over"
    )
    listens: Annotated[Literal["from", "to"], choice("end", "from", "to")] = Field(
        default="to", description="which end of a flow a generator's server runs at; data goes to `to`"
    )
    ports: tuple[Offset, ...] = Field(
        default=(0,), description="ports of a generator, beyond its flow's; none for any port"
    )
    counts: CountPatterns | None = Field(
        default=None, description="where a generator tells the bytes of its flow"
    )


def read_header(path: Path, text: str) -> Header:
    """Read the header of a recipe's text; raises DefinitionError with every mistake at its place."""
    match = _FORM.match(text)
    if match is None:
        message = "a recipe starts with a header: a line '{#---', YAML, and a line '---#}'"
        raise DefinitionError([Problem(str(path), 1, 1, message, text.partition("\n")[0])])
    tree, problems = parse_yaml(match["yaml"], str(path))  # its first line break keeps the lines' numbers
    checked = validate(Header, tree)
    _check_parameters(checked)
    problems += checked.problems
    if problems or checked.model is None:
        raise DefinitionError(list(dict.fromkeys(problems)))
    return checked.model


def _check_parameters(checked: Checked[Header]) -> None:
    """Report choices that are none, and defaults that are not what their own parameter takes."""
    for name, parameter in checked.model.parameters.items() if checked.model else ():
        where = ("parameters", name)
        if not checked.intact(*where):
            continue
        if parameter.type == "choice" and not parameter.choices:
            checked.report(where, f"parameter '{name}' has no choices; expected choices: [one, another]")
        for wrong in _wrong_default(parameter):
            checked.report((*where, "default"), f"default: {wrong}")


def _wrong_default(parameter: Parameter) -> Iterator[str]:
    try:
        parse_parameter(parameter, parameter.default or "")
    except UnitError as error:
        if parameter.default is not None:
            yield str(error)
