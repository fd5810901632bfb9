"""Whom to tell of a campaign: a command of the user's, run here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PlainValidator

from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import Duration, Strict, choice
from samovar.experiment.keys.programs import parse_program

Occasion = Literal["end", "trouble"]
OCCASIONS: tuple[Occasion, ...] = ("end", "trouble")
_EXPECTED = "expected a program and its arguments, such as [mail, -s, campaign, me@example.org]"
PROGRAM = notation.Form(
    "program",
    "a program with its arguments, as a list or as one text",
    ("mail -s campaign me@example.org", "[mail, -s, campaign, me@example.org]"),
    {"type": ["string", "array"], "items": {"type": ["string", "number"]}},
)


def _program(written: object) -> tuple[str, ...]:
    return parse_program(written, _EXPECTED)


Program = Annotated[
    tuple[str, ...], PlainValidator(_program, json_schema_input_type=str | tuple[str, ...]), PROGRAM
]


class Notify(Strict):
    """A command that is told how a campaign fares: the message on its input, its parts as SAMOVAR_…."""

    command: Program = Field(description="Program and arguments; it runs on the controller, without a shell.")
    on: tuple[Annotated[Occasion, choice("occasion", *OCCASIONS)], ...] = Field(
        OCCASIONS, description="When: at the end of each run, at trouble (what fails, what stops it)."
    )
    timeout_s: Duration = Field(30.0, alias="timeout", description="Longest time that it may take.")
