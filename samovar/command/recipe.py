"""A recipe: a Jinja2 file with a header that plan, check, docs and tests read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import yaml
from jinja2 import Template, TemplateError
from jinja2.exceptions import UndefinedError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, field_validator

from samovar.command.privilege import checked_pattern
from samovar.command.quote import plain_environment, shell_environment
from samovar.definition import parse_parameter
from samovar.errors import RecipeError
from samovar.units import UnitError

HEADER = re.compile(r"\A\{#---\n(?P<yaml>.*?)\n---#\}\n", re.DOTALL)
Kind = Literal["setting", "aqm", "generator", "logger", "step", "fact"]
PathFeature = Literal["jitter", "reorder", "duplicate", "loss_burst"]

BLOCKS: Mapping[str, frozenset[str]] = {
    "setting": frozenset({"read", "set", "wanted", "restore"}),
    "aqm": frozenset({"qdisc", "shown"}),
    "generator": frozenset({"client"}),
    "logger": frozenset({"start", "ready"}),
    "step": frozenset({"script"}),
    "fact": frozenset({"command"}),
}
"""The blocks that a recipe of each kind must have; it may have more."""


NOT_SHELL = frozenset({"wanted", "qdisc", "shown"})
"""Blocks whose text is compared or becomes one value of another recipe, and so is not quoted."""


class Parameter(BaseModel):
    """One value that a recipe takes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    description: str
    unit: str | None = None
    default: str | None = None
    choices: tuple[str, ...] = ()


class Counts(BaseModel):
    """How a generator's client says what bytes of data it sent, and its server received, as patterns.

    The last match counts; its group is a number of units of so many bytes. `cc` finds the congestion control
    that the sender's socket had, where the client tells it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sent: str
    received: str | None = None
    unit_bytes: int = 1
    cc: str | None = None

    @field_validator("sent", "received", "cc")
    @classmethod
    def _has_a_number(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern).groups
        except re.error as error:
            raise ValueError(f"no regular expression: {error}") from error
        if groups != 1:
            raise ValueError("expected one group in parentheses, around the number")
        return pattern

    def read(self, text: str) -> Counted | None:
        """Read a client's output; None where it tells nothing, what is not told is as sent."""
        sent = self._last(self.sent, text)
        received = self._last(self.received, text) if self.received else sent
        return Counted(sent, received) if sent is not None and received is not None else None

    def congestion_control(self, text: str) -> str | None:
        """Read the congestion control that a client's socket had; None where it tells none."""
        found = re.findall(self.cc, text) if self.cc else []
        return str(found[-1]) if found else None

    def _last(self, pattern: str, text: str) -> int | None:
        found = re.findall(pattern, text)
        return round(float(found[-1]) * self.unit_bytes) if found else None


class Counted(NamedTuple):
    """What a generator counted of a flow's data."""

    sent_bytes: int
    received_bytes: int


RootPattern = Annotated[str, AfterValidator(checked_pattern)]


class Header(BaseModel):
    """What a recipe says of itself before anything is rendered."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    summary: str
    needs: tuple[str, ...] = Field(default=(), description="programs that must be on the host")
    client_needs: tuple[str, ...] = Field(default=(), description="programs that a generator's client needs")
    server_needs: tuple[str, ...] = Field(default=(), description="programs that a generator's server needs")
    modules: tuple[str, ...] = Field(
        default=(), description="kernel features (qdisc names) that must be on the host"
    )
    tracepoints: tuple[str, ...] = Field(default=(), description="tracepoints that the kernel must have")
    interfaces_need: tuple[Literal["ring", "pause"], ...] = Field(
        default=(), description="what each interface must have: a transmit ring, flow control"
    )
    brings: tuple[str, ...] = Field(
        default=(), description="programs that functions of a step stand for where they are missing"
    )
    root: tuple[RootPattern, ...] = Field(
        default=(), description="what runs as root: one pattern for each kind of command"
    )
    root_lasting: tuple[RootPattern, ...] = Field(
        default=(), description="what runs as root until it is ended, bounded by timeout(1)"
    )
    root_login: str | None = Field(
        default=None, description="why no list of commands will do and root must log in"
    )
    lacks: tuple[PathFeature, ...] = Field(
        default=(), description="what of a path a bottleneck's recipe cannot do"
    )
    delay_step: str | None = Field(
        default=None, description="what a bottleneck's round-trip times are whole multiples of, such as 1ms"
    )
    duration_step: str | None = Field(
        default=None, description="what a generator's durations are whole multiples of, such as 1s"
    )
    parameters: dict[str, Parameter] = Field(default_factory=dict)
    leaves: tuple[str, ...] = Field(default=(), description="traces left in the trial's folder")
    change: Literal["none", "interface-reset", "reboot"] = "none"
    transport: Literal["tcp", "udp", "icmp"] = Field(default="tcp", description="what a generator sends over")
    listens: Literal["from", "to"] = Field(
        default="to", description="which end of a flow a generator's server runs at; data goes to `to`"
    )
    ports: tuple[int, ...] = Field(
        default=(0,), description="ports of a generator, beyond its flow's; none for any port"
    )
    counts: Counts | None = Field(default=None, description="where a generator tells the bytes of its flow")


class Recipe:
    """A parsed recipe file of one kind and name."""

    def __init__(self, kind: Kind, name: str, path: Path, header: Header, text: str) -> None:
        self.kind, self.name, self.path, self.header = kind, name, path, header
        self.defaults = {
            name: _default(path, name, known, known.default)
            for name, known in header.parameters.items()
            if known.default is not None
        }
        self._quoted: Template = shell_environment(path.parents[2]).from_string(text)
        self._plain: Template = plain_environment(path.parents[2]).from_string(text)

    @property
    def blocks(self) -> frozenset[str]:
        """Name the blocks that the recipe defines."""
        return frozenset(self._quoted.blocks)

    def render(self, block: str, values: Mapping[str, object]) -> str:
        """Render one block with its values, each quoted as a shell word.

        A header's default stands for what is not given; `given` maps each parameter that has a value to it.
        Raises RecipeError when a value is missing or the block does not exist.
        """
        if block not in self.blocks:
            raise RecipeError(
                f"{self.path}: has no block {block!r}; it has: {', '.join(sorted(self.blocks))}"
            )
        template = self._plain if block in NOT_SHELL else self._quoted
        try:
            return "".join(template.blocks[block](template.new_context(self._context(values))))
        except UndefinedError as error:
            raise RecipeError(f"{self.path}: block {block}: {error.message}") from error
        except TemplateError as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error
        except RecipeError as error:
            raise RecipeError(f"{self.path}: block {block}: {error}") from error

    def _context(self, values: Mapping[str, object]) -> dict[str, object]:
        known = {**self.defaults, **values}
        return {"given": {name: known[name] for name in self.header.parameters if name in known}, **known}


def read_recipe(kind: Kind, name: str, path: Path) -> Recipe:
    """Parse a recipe file; raises RecipeError naming the file and what was expected."""
    text = path.read_text(encoding="utf-8")
    match = HEADER.match(text)
    if match is None:
        raise RecipeError(
            f"{path}:1:1: a recipe starts with a header: a line '{{#---', YAML, and a line '---#}}'"
        )
    header = _header(path, match["yaml"])
    try:
        recipe = Recipe(kind, name, path, header, text)
    except TemplateError as error:
        raise RecipeError(f"{path}:{getattr(error, 'lineno', 1)}: {error}") from error
    missing = BLOCKS[kind] - recipe.blocks
    if missing:
        raise RecipeError(f"{path}: a {kind} recipe needs the block(s) {', '.join(sorted(missing))}")
    return recipe


def _header(path: Path, text: str) -> Header:
    try:
        return Header.model_validate(yaml.safe_load(text))
    except yaml.YAMLError as error:
        raise RecipeError(f"{path}: the header is not YAML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise RecipeError(f"{path}: header: {where}: {first['msg']}") from error


def _default(path: Path, name: str, parameter: Parameter, text: str) -> object:
    try:
        return parse_parameter(parameter, text)
    except UnitError as error:
        raise RecipeError(f"{path}: header: parameters.{name}.default: {error}") from error
