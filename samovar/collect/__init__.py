"""From what a trial left on the hosts to a whole, verified trial in the campaign's folder."""

from samovar.collect.commit import commit_trial, set_aside
from samovar.collect.files import Expected, collect

__all__ = ["Expected", "collect", "commit_trial", "set_aside"]
