"""Calibrate a testbed once per campaign: measure its paths, and find receive buffers for wanted windows."""

from samovar.campaign.calibration.calibration import Calibration as Calibration
from samovar.campaign.calibration.rwnd_calibration import render_fit as render_fit
from samovar.campaign.calibration.rwnd_calibration import window_probes as window_probes
