"""Values that an experiment gives recipes, typed as the recipes' headers say."""

from __future__ import annotations

from collections.abc import Mapping

from samovar.errors import RecipeError
from samovar.experiment import parse_parameter
from samovar.recipes.recipe import Recipe
from samovar.units import UnitError


def typed(recipe: Recipe, parameters: Mapping[str, str]) -> dict[str, object]:
    """Read the parameters that an experiment gives a recipe as the recipe's header types them.

    Raises RecipeError for a parameter that the recipe does not take, or a value that is not of its type.
    """
    known = recipe.header.parameters
    try:
        return {name: parse_parameter(known[name], text) for name, text in parameters.items()}
    except KeyError as error:
        names = ", ".join(known) or "none"
        raise RecipeError(f"{recipe.path}: no parameter {error}; it takes: {names}") from None
    except UnitError as error:
        raise RecipeError(f"{recipe.path}: {error}") from error
