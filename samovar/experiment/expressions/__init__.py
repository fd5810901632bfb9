"""Values of keys: formulas, random amounts, one value per direction or host."""

from samovar.experiment.expressions.dimension import canonical as canonical
from samovar.experiment.expressions.formula import Formula as Formula
from samovar.experiment.expressions.formula_values import Scope as Scope
from samovar.experiment.expressions.formula_values import computed_text as computed_text
from samovar.experiment.expressions.values import DISTRIBUTIONS as DISTRIBUTIONS
from samovar.experiment.expressions.values import Buffer as Buffer
from samovar.experiment.expressions.values import Directional as Directional
from samovar.experiment.expressions.values import Distribution as Distribution
from samovar.experiment.expressions.values import DistributionText as DistributionText
from samovar.experiment.expressions.values import LevelText as LevelText
from samovar.experiment.expressions.values import PerHost as PerHost
