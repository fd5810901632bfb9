"""Measurements of a testbed that a campaign makes once: paths, and the buffers that give receive windows."""

from samovar.campaign.calibration.calibration import Calibration

__all__ = ["Calibration"]
