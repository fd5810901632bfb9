"""Recipe + values -> text to run; quoting lives here and nowhere else."""

from samovar.recipes.catalogue import Catalogue
from samovar.recipes.header import Header, Parameter
from samovar.recipes.recipe import Recipe

__all__ = ["Catalogue", "Header", "Parameter", "Recipe"]
