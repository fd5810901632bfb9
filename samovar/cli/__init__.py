"""The commands of samovar, without the program that parses their arguments.

Each module `*_commands` holds a group of commands: functions that take the project folder and their
arguments, print, and return an exit code. fabfile.py is a program that calls them.
"""

from samovar.cli.controller import Controller
from samovar.cli.project import PlannedExperiment, Request, RunRequest

__all__ = ["Controller", "PlannedExperiment", "Request", "RunRequest"]
