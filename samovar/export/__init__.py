"""Export what the analysis has measured to other programs: tables as CSV or Parquet, trials for Flent."""

from samovar.export.formats import FORMATS as FORMATS
from samovar.export.formats import export as export
