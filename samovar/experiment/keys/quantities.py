"""Quantities: a logger of an experiment may name what is recorded, such as tcp-state, instead of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from samovar.experiment.keys.factor_keys import Logger
from samovar.experiment.keys.operating_systems import OPERATING_SYSTEMS
from samovar.experiment.keys.recipe_parameters import ParameterInfo, RecipeCatalogue, settable


def recorder_of(catalogue: RecipeCatalogue, logger: Logger, os: str) -> str | None:
    """Return the recipe that a logger of an experiment runs on hosts of a system; None if there is none.

    It is the recipe of that name, or one that records the quantity of that name: the first of `prefer` that
    the system has, else the system's default.
    """
    recorders = catalogue.quantities(os).get(logger.logger, ())
    if not recorders:
        return logger.logger if logger.logger in catalogue.names("logger", os) else None
    return next((name for name in logger.prefer if name in recorders), recorders[0])


def recorders_by_system(
    catalogue: RecipeCatalogue, quantity: str, systems: Iterable[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Return the recipes that record a quantity, the default first, on each system that has one.

    These are all operating systems, and the releases that `systems` names.
    """
    every = dict.fromkeys((*OPERATING_SYSTEMS, *systems))
    found = {os: catalogue.quantities(os).get(quantity, ()) for os in every}
    return {os: recipes for os, recipes in found.items() if recipes}


def logger_parameters(catalogue: RecipeCatalogue, name: str, os: str) -> dict[str, ParameterInfo] | None:
    """Return the parameters that an experiment may set of a logger; None if there is no such logger.

    A quantity takes those of all recipes that record it on any system: each host uses what its recipe takes.
    """
    if name in catalogue.names("logger", os):
        return settable(catalogue, "logger", name, os)
    recorders = recorders_by_system(catalogue, name, [os])
    return dict(_parameters(catalogue, recorders)) if recorders else None


def _parameters(
    catalogue: RecipeCatalogue, recorders: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, ParameterInfo]]:
    for os, recipes in recorders.items():
        for recipe in recipes:
            yield from settable(catalogue, "logger", recipe, os).items()
