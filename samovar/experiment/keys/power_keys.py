"""How a machine is switched on and off from outside: by commands of the user's, or by IPMI."""

from __future__ import annotations

from string import Formatter
from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import Strict, Word, scalar
from samovar.experiment.keys.programs import parse_program
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

PLACEHOLDERS = ("host", "address", "outlet")
_EXPECTED = "expected a program and its arguments, such as [snmpset, -v3, pdu, '{outlet}', i, '2']"
ARGUMENT = notation.Form(
    "command",
    "a program with its arguments, as a list or as one text; {host}, {address} and {outlet} stand in it",
    ("wakeonlan 52:54:00:12:34:56", "[snmpset, -v3, pdu, '{outlet}', i, '2']"),
    {"type": ["string", "array"], "items": {"type": ["string", "number"]}},
)


def _command(written: object) -> tuple[str, ...]:
    words = parse_program(written, _EXPECTED)
    for word in words:
        _check_placeholders(word)
    return words


def _check_placeholders(word: str) -> None:
    try:
        names = [name for _, name, _, _ in Formatter().parse(word) if name is not None]
    except ValueError:
        raise UnitError(f"'{word}' has a lone brace; expected {{{{ or }}}} for one that is meant") from None
    for name in names:
        if name not in PLACEHOLDERS:
            raise UnitError(unknown("placeholder", name, PLACEHOLDERS))


def _ipmi_address(text: str) -> str:
    if not text or text.startswith("-") or any(c.isspace() for c in text):
        raise UnitError(f"'{text}' is no address; expected that of the BMC, such as 10.64.1.11")
    return text


Command = Annotated[
    tuple[str, ...], PlainValidator(_command, json_schema_input_type=str | tuple[str, ...]), ARGUMENT
]
BmcWord = Annotated[str, BeforeValidator(scalar(_ipmi_address)), notation.WORD]


class Ipmi(Strict):
    """A machine's management controller, spoken to with ipmitool over the network."""

    address: BmcWord = Field(description="Address or name of the management controller.")
    user: BmcWord = Field(description="User to log in as there.")
    password_file: Word = Field(
        description="File with the password, for its owner alone (mode 600); paths may start with ~."
    )


class Power(Strict):
    """How a machine is switched: commands that run on the controller, without a shell, or IPMI."""

    on: Command | None = Field(None, description="Command that switches it on.")
    off: Command | None = Field(None, description="Command that switches it off.")
    cycle: Command | None = Field(None, description="Command that does both; else off, then on.")
    status: Command | None = Field(None, description="Command that prints whether it is on.")
    outlet: Word | None = Field(None, description="What {outlet} is in the commands, such as 7.")
    ipmi: Ipmi | None = Field(None, description="Management controller, in place of commands.")

    @model_validator(mode="after")
    def _is_enough(self) -> Power:
        given = [name for name in ("on", "off", "cycle", "status") if getattr(self, name) is not None]
        if self.ipmi is not None and given:
            raise ValueError(f"has ipmi and {', '.join(given)}; expected ipmi or commands")
        if self.ipmi is None and self.cycle is None and (self.on is None or self.off is None):
            raise ValueError("cannot switch the machine off and on; expected cycle, or on and off, or ipmi")
        if self.outlet is None and any("{outlet}" in word for word in self._words()):
            raise ValueError("a command has {outlet} and there is none; expected outlet: ... beside it")
        return self

    def _words(self) -> tuple[str, ...]:
        commands = (self.on, self.off, self.cycle, self.status)
        return tuple(word for command in commands for word in command or ())
