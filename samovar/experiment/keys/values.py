"""Values that are more than one number or text: a queue's size, one value per direction, one per host."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Buffer:
    """The size of a queue, in packets or in bytes as it is written; a computed one is known in both."""

    packets: int | None
    bytes: int | None


@dataclass(frozen=True)
class Directional(Generic[T]):
    """One value for each direction of the path: `down` is bottleneck.from -> to, `up` the way back.

    None leaves a direction as it is without the value.
    """

    down: T | None = None
    up: T | None = None


@dataclass(frozen=True)
class PerHost(Generic[T]):
    """One value for each host or role that is named."""

    hosts: Mapping[str, T]


@dataclass(frozen=True)
class DistributionText:
    """A distribution as written: {uniform: (0s, 5s)}, {exponential: 100KB}."""

    keys: Mapping[str, str | tuple[str, ...]]


Value = str | Directional[str] | PerHost[str] | DistributionText
"""A value of a level or setting as it is written: one text, one per direction or host, a distribution."""
