"""What stands behind each command: finds the files, opens the testbed, hands on to the layers below."""

from __future__ import annotations

from samovar.controller.reaching import Switching
from samovar.controller.running import Controller
from samovar.controller.study import Going, Question, Study

__all__ = ["Controller", "Going", "Question", "Study", "Switching"]
