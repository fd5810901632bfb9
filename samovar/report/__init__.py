"""Make the report of a campaign (scorecard, PDF, bundle), and the report of a study."""

from samovar.report.bundle import make_bundle as make_bundle
from samovar.report.campaign_data import shown_part as shown_part
from samovar.report.scorecard import exit_status as exit_status
from samovar.report.study_report import make_study as make_study
