"""Make reports of campaigns (scorecard, PDF, page, bundle), of studies and of comparisons."""

from samovar.report.bundle import make_bundle as make_bundle
from samovar.report.campaign_data import read_campaign as read_campaign
from samovar.report.comparison import COMPARISON_PDF as COMPARISON_PDF
from samovar.report.comparison import CampaignComparison as CampaignComparison
from samovar.report.comparison import Side as Side
from samovar.report.comparison import make_comparison as make_comparison
from samovar.report.comparison import parse_limit as parse_limit
from samovar.report.page import PAGE as PAGE
from samovar.report.page import write_index as write_index
from samovar.report.scorecard import exit_status as exit_status
from samovar.report.study_report import make_study as make_study
