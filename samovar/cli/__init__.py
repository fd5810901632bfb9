"""What stands behind each command: finds the files, opens the testbed, hands on to the layers below."""

from __future__ import annotations

from samovar.cli.connections import Switching
from samovar.cli.controller import Controller
from samovar.cli.requests import Going, Question, Study

__all__ = ["Controller", "Going", "Question", "Study", "Switching"]
