"""Recipe + values -> text to run; quoting lives here and nowhere else."""

from samovar.command.catalogue import Catalogue
from samovar.command.header import Header, Parameter
from samovar.command.recipe import Recipe

__all__ = ["Catalogue", "Header", "Parameter", "Recipe"]
