"""Recipe + values -> text to run; quoting lives here and nowhere else."""

from samovar.command.catalogue import Catalogue
from samovar.command.recipe import Header, Parameter, Recipe

__all__ = ["Catalogue", "Header", "Parameter", "Recipe"]
