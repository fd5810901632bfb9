"""Settings of hosts by their key (cc, rwnd, mtu, txd, cc.PARAMETER, RECIPE.PARAMETER): what may be said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samovar.experiment.keys import SETTINGS, refusal, settable
from samovar.experiment.nearest import unknown
from samovar.experiment.recipe_interface import RecipeCatalogue
from samovar.units import UnitError


class Refusal(NamedTuple):
    """Why a setting cannot stand, and whether that is because of its key."""

    message: str
    of_key: bool


def refused_setting(catalogue: RecipeCatalogue, key: str, text: str, system: str) -> Refusal | None:
    """Say why a host of a system cannot be set like that, or None when it can."""
    recipe, _, parameter = key.partition(".")
    recipes = catalogue.names("setting", system)
    if recipe not in recipes:
        return Refusal(unknown(f"setting on {system}", recipe, recipes), True)
    if key in SETTINGS:
        return _unreadable(key, text)
    if recipe == "cc" and parameter:
        return None if text else Refusal(f"{key}: is empty; expected a value", False)
    known = settable(catalogue, "setting", recipe, system)
    if parameter not in known:
        takes = ", ".join(f"{recipe}.{one}" for one in known) or "none"
        if not parameter:
            return Refusal(f"setting '{recipe}' is set by its parameters; known: {takes}", True)
        return Refusal(unknown(f"parameter of {recipe} on {system}", parameter, known), True)
    message = refusal(parameter, text, known, ())
    return Refusal(f"{recipe}.{message}", False) if message else None


def _unreadable(key: str, text: str) -> Refusal | None:
    try:
        SETTINGS[key](text)
    except UnitError as error:
        return Refusal(f"{key}: {error}", False)
    return None


def known_settings(catalogue: RecipeCatalogue, system: str) -> Iterator[str]:
    """Yield RECIPE.PARAMETER of every setting recipe of a system."""
    for recipe in sorted(catalogue.names("setting", system)):
        yield from (f"{recipe}.{name}" for name in settable(catalogue, "setting", recipe, system))
