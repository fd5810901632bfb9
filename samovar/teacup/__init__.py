"""Import from TEACUP: a configuration becomes an experiment and a testbed, results become a campaign."""

from samovar.teacup.import_config import import_config as import_config
from samovar.teacup.import_results import import_results as import_results
