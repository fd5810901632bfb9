"""Find the recipes for a logger that names a quantity to record, such as tcp-state, instead of a recipe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from samovar.experiment.keys.factor_keys import Logger
from samovar.experiment.keys.operating_systems import OPERATING_SYSTEMS
from samovar.experiment.keys.recipe_parameters import ParameterInfo, RecipeCatalogue, settable


def recorder_of(catalogue: RecipeCatalogue, logger: Logger, os: str) -> str | None:
    """Return the recipe that a logger of an experiment runs on a system, or None if the system has none.

    If the logger names a quantity, the result is the first recipe of `prefer` that records the quantity on
    the system, or else the system's default. If the logger names a recipe, the result is that recipe.
    """
    recorders = catalogue.quantities(os).get(logger.logger, ())
    if not recorders:
        return logger.logger if logger.logger in catalogue.names("logger", os) else None
    return next((name for name in logger.prefer if name in recorders), recorders[0])


def recorders_by_system(
    catalogue: RecipeCatalogue, quantity: str, systems: Iterable[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """Return the recipes that record a quantity, by system, each system's default recipe first.

    The result covers all operating systems, and the entries of `systems`, which may be releases such as
    freebsd-11. Systems without a recipe for the quantity are left out.
    """
    every = dict.fromkeys((*OPERATING_SYSTEMS, *systems))
    found = {os: catalogue.quantities(os).get(quantity, ()) for os in every}
    return {os: recipes for os, recipes in found.items() if recipes}


def logger_parameters(catalogue: RecipeCatalogue, name: str, os: str) -> dict[str, ParameterInfo] | None:
    """Return the parameters of a logger that an experiment may set, or None for an unknown logger.

    A quantity accepts the parameters of all recipes that record it on any system. Each host uses the
    parameters that its own recipe has.
    """
    if name in catalogue.names("logger", os):
        return settable(catalogue, "logger", name, os)
    recorders = recorders_by_system(catalogue, name, [os])
    if not recorders:
        return None
    own = [settable(catalogue, "logger", one, on) for on, recipes in recorders.items() for one in recipes]
    return {parameter: info for known in own for parameter, info in known.items()}
