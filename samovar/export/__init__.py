"""Export the analysis' results for other programs: tables as CSV or Parquet, trials as Flent data files."""

from samovar.export.formats import FORMATS as FORMATS
from samovar.export.formats import export as export
