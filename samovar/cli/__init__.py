"""Commands: what each one does with the files of a project, its testbeds and its campaigns."""

from samovar.cli.controller import Controller
from samovar.cli.requests import ExplainRequest, PlannedExperiment, PowerRequest, RunRequest

__all__ = ["Controller", "ExplainRequest", "PlannedExperiment", "PowerRequest", "RunRequest"]
