"""Calibrate a testbed once per campaign: measure its paths, and find receive buffers for wanted windows."""

from __future__ import annotations

from samovar.campaign.calibration.path_calibration import PathCalibration
from samovar.campaign.calibration.rwnd_calibration import WindowCalibration
from samovar.campaign.calibration.rwnd_calibration import render_fit as render_fit
from samovar.campaign.calibration.rwnd_calibration import window_probes as window_probes
from samovar.campaign.context import CampaignContext


class Calibration:
    """The path and receive-window calibration of one testbed; results stay valid until a host reboots."""

    def __init__(self, context: CampaignContext) -> None:
        self.paths, self.windows = PathCalibration(context), WindowCalibration(context)
