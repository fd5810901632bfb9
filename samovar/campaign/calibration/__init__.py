"""Measurements of a testbed that a campaign makes once: paths, and the buffers that give receive windows."""

from samovar.campaign.calibration.calibration import Calibration as Calibration
from samovar.campaign.calibration.rwnd_calibration import render_fit as render_fit
from samovar.campaign.calibration.rwnd_calibration import window_probes as window_probes
