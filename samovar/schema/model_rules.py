"""What the models refuse of keys together, for those models whose validators say so in Python."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.schema.json_schema import Json, at_least_one, at_most_one

_ALWAYS: Mapping[str, tuple[Json, ...]] = {
    "Arrivals": (at_most_one("until", "count"),),
    "Expect": ({"if": {"required": ["within"]}, "then": {"required": ["equals"]}},),
    "Flow": (
        at_most_one("size", "duration", "until"),
        at_most_one("arrivals", "count"),
        at_most_one("arrivals", "every"),
    ),
    "Link": (at_most_one("adapter", "wlan"),),
    "NetworkPath": (at_most_one("rtt", "delay"),),
    "PathClass": (at_most_one("rtt", "delay"), at_most_one("flow", "from"), at_most_one("flow", "to")),
}
_OF_WHOLE: Mapping[str, tuple[Json, ...]] = {
    "Arrivals": (at_least_one("until", "count"),),
    "Expect": (at_least_one("equals", "below", "above", "between"),),
    "PathClass": (at_least_one("flow", "from", "to"), at_least_one("rtt", "delay", "loss")),
    "Stop": (at_least_one("after", "when"),),
}


def rules_of(model: str, partial: bool) -> list[Json]:
    """Return what must hold of a model's keys; of one that lies over another, only what always must."""
    return [*_ALWAYS.get(model, ()), *(() if partial else _OF_WHOLE.get(model, ()))]
