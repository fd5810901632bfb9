"""The commands of samovar, without the program that parses their arguments.

Each module `*_commands` holds a group of commands: functions that take the project folder and their
arguments, print, and return an exit code. fabfile.py is a program that calls them. The names below are
imported when they are first used: they need nearly all of samovar, and help must be printed at once.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samovar.cli.controller import Controller
    from samovar.cli.requests import ExplainRequest, PlannedExperiment, PowerRequest, RunRequest

__all__ = ["Controller", "ExplainRequest", "PlannedExperiment", "PowerRequest", "RunRequest"]


def __getattr__(name: str) -> Any:
    """Import a name of the public face."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{'controller' if name == 'Controller' else 'requests'}"), name)
