"""The calibrations of one testbed during a campaign."""

from __future__ import annotations

from samovar.campaign.calibration.path_calibration import PathCalibration
from samovar.campaign.calibration.window_calibration import WindowCalibration
from samovar.campaign.context import CampaignContext


class Calibration:
    """Calibration results of one testbed: each is measured once and holds until a host is rebooted."""

    def __init__(self, context: CampaignContext) -> None:
        self.paths, self.windows = PathCalibration(context), WindowCalibration(context)
