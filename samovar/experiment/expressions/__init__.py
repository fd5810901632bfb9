"""Values of keys: formulas, random amounts, one value per direction or host."""

from samovar.experiment.expressions.dimension import canonical
from samovar.experiment.expressions.formula import Formula
from samovar.experiment.expressions.formula_values import Scope, computed_text
from samovar.experiment.expressions.values import (
    DISTRIBUTIONS,
    Buffer,
    Directional,
    Distribution,
    DistributionText,
    LevelText,
    PerHost,
)

__all__ = [
    "DISTRIBUTIONS",
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
