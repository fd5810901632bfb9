"""The calibrations of one testbed in a campaign."""

from __future__ import annotations

from samovar.campaign.calibration.path_calibration import PathCalibration
from samovar.campaign.calibration.rwnd_calibration import WindowCalibration
from samovar.campaign.context import CampaignContext


class Calibration:
    """Path and receive-window calibration: each result is measured once and holds until a host reboots."""

    def __init__(self, context: CampaignContext) -> None:
        self.paths, self.windows = PathCalibration(context), WindowCalibration(context)
