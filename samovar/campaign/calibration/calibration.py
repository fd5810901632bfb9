"""Hold the path calibration and the receive-window calibration of one testbed."""

from __future__ import annotations

from samovar.campaign.calibration.path_calibration import PathCalibration
from samovar.campaign.calibration.rwnd_calibration import WindowCalibration
from samovar.campaign.context import CampaignContext


class Calibration:
    """The path and receive-window calibration of one testbed; results stay valid until a host reboots."""

    def __init__(self, context: CampaignContext) -> None:
        self.paths, self.windows = PathCalibration(context), WindowCalibration(context)
