"""Values of keys: formulas, random amounts, one value per direction or host."""

from samovar.experiment.expressions.distribution import DISTRIBUTIONS, STEP, Distribution
from samovar.experiment.expressions.formula import Formula
from samovar.experiment.expressions.formula_names import canonical
from samovar.experiment.expressions.formula_values import Scope, computed_text
from samovar.experiment.expressions.values import Buffer, Directional, DistributionText, LevelText, PerHost

__all__ = [
    "DISTRIBUTIONS",
    "STEP",
    "Buffer",
    "Directional",
    "Distribution",
    "DistributionText",
    "Formula",
    "LevelText",
    "PerHost",
    "Scope",
    "canonical",
    "computed_text",
]
