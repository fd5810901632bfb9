"""The report: the scorecard of a campaign, its PDF and the bundle around it; the report of a study."""

from __future__ import annotations

from samovar.report.bundle import make_bundle
from samovar.report.scorecard import exit_status
from samovar.report.study_report import make_study

__all__ = ["exit_status", "make_bundle", "make_study"]
