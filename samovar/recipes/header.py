"""The typed header of a recipe: YAML between the recipe's first line, `{#---`, and the line `---#}`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from samovar.errors import DefinitionError, Problem
from samovar.experiment import ParameterInfo, Validation, keys, validate, yaml_tree
from samovar.experiment import value_types as types
from samovar.recipes.sudo_rules import checked_pattern
from samovar.units import UnitError

_FORM = re.compile(r"\A\{#---(?P<yaml>\n.*?\n)---#\}(?:\n|\Z)", re.DOTALL)


def _one_number(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groups
    except re.error as error:
        raise ValueError(f"'{pattern}' is not a regular expression: {error}") from error
    if groups != 1:
        raise ValueError("the pattern must have one group in parentheses, around the number")
    return pattern


NumberPattern = Annotated[types.Word, AfterValidator(_one_number)]
RootPattern = Annotated[types.Word, AfterValidator(checked_pattern)]
Words = tuple[types.Word, ...]
Change = Annotated[
    Literal["none", "interface-reset", "reboot"], types.choice("change", "none", "interface-reset", "reboot")
]
Transport = Annotated[str, types.choice("transport", "tcp", "udp", "icmp")]
ServerEnd = Annotated[str, types.choice("end", "from", "to")]
InterfaceNeed = Annotated[str, types.choice("need of interfaces", "ring", "pause")]
PathFeature = Annotated[str, types.choice("key of a path", "jitter", "reorder", "duplicate", "loss_burst")]
Offset = Annotated[int, types.whole_number("port", "an offset", "0", 0, 65535)]


class CountPatterns(keys.Strict):
    """Patterns that match byte counts in the output of a generator's client.

    The last match counts; its group is a number in units of `unit_bytes` bytes, or of the value of the
    parameter `unit_parameter`, such as the length of a packet. `cc` matches the congestion control of the
    sender's socket, if the client prints it. For a program that counts only whole blocks, `block` is the size
    of a block, and `block_parameter` is the parameter that changes this size.
    """

    sent: NumberPattern
    received: NumberPattern | None = None
    unit_bytes: types.Positive = Field(1, alias="unit_bytes")
    unit_parameter: types.Word | None = None
    cc: NumberPattern | None = None
    block_bytes: types.Positive | None = Field(None, alias="block")
    block_parameter: types.Word | None = None

    def read(self, text: str, parameters: Mapping[str, object]) -> ByteCounts | None:
        """Return the byte counts in a client's output, or None if it has none.

        `parameters` has the values of the recipe's parameters.
        """
        unit_bytes = int(str(parameters.get(self.unit_parameter or "", self.unit_bytes)))
        sent = self._last(self.sent, text, unit_bytes)
        received = self._last(self.received, text, unit_bytes) if self.received else None
        if sent is None or (self.received and received is None):
            return None
        return ByteCounts(sent, received)

    def congestion_control(self, text: str) -> str | None:
        """Return the congestion control in a client's output, or None if it has none."""
        matches = re.findall(self.cc, text) if self.cc else []
        return str(matches[-1]) if matches else None

    def _last(self, pattern: str, text: str, unit_bytes: int) -> int | None:
        matches = re.findall(pattern, text)
        return round(float(matches[-1]) * unit_bytes) if matches else None


class ByteCounts(NamedTuple):
    """Bytes of a flow's data, as its generator counted them.

    `received_bytes` is None if the generator does not know how many bytes had arrived when it ended.
    """

    sent_bytes: int
    received_bytes: int | None


class Header(keys.Strict):
    """The header of a recipe, which is read before anything is rendered; see docs/reference/recipes.md."""

    summary: types.Sentence
    needs: Words = ()  # programs that the host must have
    client_needs: Words = ()  # programs that the host of a generator's client must have
    server_needs: Words = ()  # programs that the host of a generator's server must have
    modules: Words = ()  # kernel features (names of queue disciplines) that the host must have
    modules_note: types.Sentence | None = None  # why some kernels lack them, and what to use instead
    tracepoints: Words = ()
    interfaces_need: tuple[InterfaceNeed, ...] = ()
    root: tuple[RootPattern, ...] = ()  # commands that run as root: one pattern for each kind of command
    root_lasting: tuple[RootPattern, ...] = ()  # root commands that run until stopped, under timeout(1)
    root_login: types.Sentence | None = None  # why sudo with a list of commands is not enough
    lacks: tuple[PathFeature, ...] = ()  # path keys that this bottleneck recipe does not support
    # The RTTs of a bottleneck and the durations of a generator must be multiples of these steps.
    delay_step_s: types.Duration | None = Field(None, alias="delay_step")
    duration_step_s: types.Duration | None = Field(None, alias="duration_step")
    parameters: dict[types.Word, ParameterInfo] = Field(default_factory=dict)
    records: types.Word | None = None  # quantity that a logger records; by default, its own name
    alternative_to: types.Word | None = None  # default logger of the same quantity
    alternatives: Words = ()  # generators of similar traffic, for hosts that lack this one's programs
    leaves: Words = ()  # traces that the program leaves in the trial's folder
    change: Change = "none"
    transport: Transport = "tcp"
    listens: ServerEnd = "to"  # the end of a flow at which a generator's server runs; data flows to `to`
    ports: tuple[Offset, ...] = (0,)  # a generator's ports, as offsets from its flow's port; empty if unknown
    counts: CountPatterns | None = None

    def needs_of(self, end: str | None) -> Words:
        """Return the additional programs that one end of a generator needs; empty for other recipes."""
        return {"client": self.client_needs, "server": self.server_needs}.get(end or "", ())


def read_header(path: Path, text: str) -> Header:
    """Read the header of a recipe's text; raises DefinitionError with every error and its place."""
    match = _FORM.match(text)
    if match is None:
        message = "a recipe starts with a header: a line '{#---', YAML, and a line '---#}'"
        raise DefinitionError([Problem(str(path), 1, 1, message, text.partition("\n")[0])])
    # the YAML begins with the line break of line 1, so its line numbers are those of the file
    tree, problems = yaml_tree.parse_yaml(match["yaml"], str(path))
    checked = validate(Header, tree)
    _check_parameters(checked)
    problems += checked.problems
    if problems or checked.model is None:
        raise DefinitionError(list(dict.fromkeys(problems)))
    return checked.model


def _check_parameters(checked: Validation[Header]) -> None:
    """Report parameters of type `choice` without choices, and invalid values of `default` and `least`."""
    for name, parameter in checked.model.parameters.items() if checked.model else ():
        where = ("parameters", name)
        if not checked.intact(*where):
            continue
        if parameter.type == "choice" and not parameter.choices:
            checked.report(where, f"parameter '{name}' has no choices; expected choices: [one, another]")
        for key, value in (("least", parameter.least), ("default", parameter.default)):
            try:
                _ = value is not None and keys.parse_parameter(parameter, value)
            except UnitError as error:
                checked.report((*where, key), f"{key}: {error}")
                break
