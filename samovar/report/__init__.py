"""The report: a campaign's scorecard, its PDF and the bundle around it."""

from __future__ import annotations

from samovar.report.bundle import make_bundle, read_verdicts
from samovar.report.scorecard import exit_status

__all__ = ["exit_status", "make_bundle", "read_verdicts"]
