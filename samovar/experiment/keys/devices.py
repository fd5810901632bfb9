"""Links that are devices nobody logs in to: powerline adapters and wireless networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WrapValidator

from samovar import units
from samovar.experiment.expressions.values import Buffer, Directional
from samovar.experiment.keys import notation
from samovar.experiment.keys.field_types import Strict, choice, parse_buffer, scalar
from samovar.experiment.keys.path_keys import NetworkPath

MEDIA = ("simplex", "duplex")
STANDARDS = ("802.11a", "802.11b", "802.11g", "802.11n", "802.11ac", "802.11ax")
LARGEST_QUANTA = 65535  # IEEE 802.3, annex 31B: a 16-bit field, in units of 512 bit times


def _quanta(text: str) -> int:
    return units.parse_count(text, least=0, most=LARGEST_QUANTA, what="number of quanta")


Rate = Annotated[int, BeforeValidator(scalar(units.parse_rate)), notation.RATE]
Delay = Annotated[
    float,
    BeforeValidator(scalar(lambda text: units.parse_duration(text, allow_zero=True))),
    notation.DELAY,
]
Frames = Annotated[Buffer, WrapValidator(lambda written, _: scalar(parse_buffer)(written)), notation.BUFFER]
Switch = Annotated[
    bool, BeforeValidator(scalar(lambda text: bool(units.parse_switch(text)))), notation.SWITCH
]
Quanta = Annotated[
    int,
    BeforeValidator(scalar(_quanta)),
    notation.whole("integer", "a number of quanta", ("65535",), 0, LARGEST_QUANTA),
]
Share = Annotated[float, BeforeValidator(scalar(units.parse_share)), notation.SHARE]


class Adapter(Strict):
    """A pair of adapters, such as powerline ones, with a queue of frames in front of a slower medium."""

    rate_bps: Rate = Field(alias="rate", description="Rate of the medium, such as 40Mbit.")
    buffer: Frames = Field(description="What either adapter queues, such as 2720packets.")
    delay_s: Delay = Field(0.0, alias="delay", description="One-way delay of the idle medium, such as 2ms.")
    medium: Annotated[Literal["simplex", "duplex"], choice("medium", *MEDIA)] = Field(
        "duplex", description="simplex: both ways share the rate; duplex: each way has it."
    )
    flow_control: Switch = Field(
        False, description="on: an adapter whose queue is full sends PAUSE frames in place of dropping."
    )
    pause_quanta: Quanta = Field(
        LARGEST_QUANTA, description="How long a PAUSE frame asks for, in units of 512 bit times."
    )
    drift: Share = Field(0.0, description="How far the medium's rate wanders with time, such as 5%.")


class Wlan(Strict):
    """A wireless network whose stations share the air."""

    standard: Annotated[str, choice("standard", *STANDARDS)] = Field(
        description="The standard that the stations speak, such as 802.11g."
    )
    rate_bps: Rate | None = Field(
        None, alias="rate", description="Rate of every station, such as 54Mbit; else they adapt it."
    )


@dataclass(frozen=True)
class DeviceParameter:
    """One parameter of a device that an experiment's path may give."""

    type: str
    description: str
    unit: str | None = None
    choices: tuple[str, ...] = ()


DEVICE_PARAMETERS: Mapping[str, DeviceParameter] = {
    "medium": DeviceParameter("text", str(Adapter.model_fields["medium"].description), choices=MEDIA),
    "flow_control": DeviceParameter("switch", str(Adapter.model_fields["flow_control"].description)),
    "pause_quanta": DeviceParameter("integer", str(Adapter.model_fields["pause_quanta"].description)),
    "drift": DeviceParameter("share", str(Adapter.model_fields["drift"].description)),
}
"""What the path of a device takes beside rate, rtt, delay, buffer and loss."""

ROUTER_ONLY = ("jitter", "loss_burst", "reorder", "duplicate", "aqm", "classes")
"""Keys of the path that only a router can be set to."""


def with_device(path: NetworkPath | None, device: Adapter | None) -> NetworkPath | None:
    """Return a path with what its device says where the path says nothing; one value is of both ways."""
    if device is None:
        return path
    given = path or NetworkPath()
    changes: dict[str, Any] = {
        "rate_bps": _both(device.rate_bps if given.rate_bps is None else given.rate_bps),
        "buffer": _both(device.buffer if given.buffer is None else given.buffer),
    }
    if "rtt_s" not in given.model_fields_set and given.delay_s is None:
        changes["rtt_s"] = 2 * device.delay_s
    return given.model_copy(update=changes)


def _both(value: object) -> object:
    return value if isinstance(value, Directional) else Directional(value, value)
