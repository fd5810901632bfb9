"""What a host has counted so far, and how its settings stand: looked at before the traffic and after it."""

from __future__ import annotations

from collections.abc import Iterable

from samovar.recipes.catalogue import Catalogue
from samovar.recipes.setting_recipes import Setting

FOUND = "---- as found ----"
RESTORED = "---- as restored ----"
"""Lines between the parts of what the script of a trial's end prints."""


def counting_text(catalogue: Catalogue, system: str, settings: Iterable[Setting]) -> str:
    """Give the text that prints a host's counters as key=value lines; nothing where no recipe counts."""
    own = "counters" in catalogue.names("step", system)
    parts = [catalogue.recipe("step", "counters", system).render("script", {})] if own else []
    for setting in settings:
        recipe = catalogue.recipe("setting", setting.recipe, system)
        if "counters" in recipe.blocks:
            parts.append(recipe.render("counters", setting.values))
    return "".join(parts)


def split_finish_output(text: str) -> tuple[str, str, str]:
    """Split what the script of a trial's end printed: counters, the state as found, the state restored."""
    counters, _, rest = text.partition(f"{FOUND}\n")
    found, _, restored = rest.partition(f"{RESTORED}\n")
    return counters, found, restored
