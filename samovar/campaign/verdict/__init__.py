"""Judge a trial as valid, suspect or invalid, with reasons; all_checks.py lists every check."""

from samovar.campaign.verdict.all_checks import run_checks as run_checks
from samovar.campaign.verdict.all_checks import run_checks_without_traffic as run_checks_without_traffic
from samovar.campaign.verdict.all_checks import verdict_of as verdict_of
from samovar.campaign.verdict.check_result import Check as Check
from samovar.campaign.verdict.check_result import Verdict as Verdict
from samovar.campaign.verdict.check_result import short_reasons as short_reasons
from samovar.campaign.verdict.evidence import MTU_AND_ROUTES as MTU_AND_ROUTES
from samovar.campaign.verdict.evidence import NOT_OVERHEAD as NOT_OVERHEAD
from samovar.campaign.verdict.evidence import CounterSpan as CounterSpan
from samovar.campaign.verdict.evidence import Evidence as Evidence
from samovar.campaign.verdict.evidence import TrafficFailure as TrafficFailure
from samovar.campaign.verdict.evidence import with_prefix as with_prefix
from samovar.campaign.verdict.path_checks import check_direction as check_direction
from samovar.campaign.verdict.path_measurement import DirectionMeasurement as DirectionMeasurement
from samovar.campaign.verdict.path_measurement import parse_measurement as parse_measurement
from samovar.campaign.verdict.pcap_reader import packets_of as packets_of
from samovar.campaign.verdict.pcap_reader import snaplen_of as snaplen_of
from samovar.campaign.verdict.program_checks import blamed_for_traffic as blamed_for_traffic
from samovar.campaign.verdict.program_checks import check_traffic_failures as check_traffic_failures
from samovar.campaign.verdict.program_checks import start_times as start_times
