"""Measure the trials of a campaign in jobs of a cluster, before the campaign is analysed on one computer."""

from __future__ import annotations

from pathlib import Path

from samovar.analyse import AnalysedPart, measure_commands, unmeasured
from samovar.cli.cluster_jobs import Jobs, require_snakemake, run_jobs
from samovar.cli.program import event_display, show
from samovar.errors import AnalysisError
from samovar.units import counted

JOBS = 8
"""The number of jobs without the option --jobs."""
PROCESSES = 2
"""How many trials a job measures at the same time."""
BASE_MB, MEMORY_PER_BYTE = 1000, 10
"""Memory of a job: its base, and for each process a multiple of the compressed size of the largest trial."""
BASE_MINUTES, BYTES_PER_MINUTE = 30, 60_000_000
"""Time limit of a job: its base, and how many compressed bytes are measured in a minute at least."""


def measure_in_jobs(
    root: Path, campaign: Path, part: AnalysedPart | None, on: str, jobs: int | None, again: str
) -> None:
    """Measure in jobs the trials of a campaign that are not measured yet, and cache their measures.

    Raises CampaignError if Snakemake or a scheduler is missing. Raises AnalysisError if a job fails; the
    message gives the command that measures the missing trials.
    """
    require_snakemake(on)
    with event_display(root) as display:
        left = unmeasured(campaign, root, display, part)
    of = min(jobs or JOBS, len(left.trials))
    if of == 0:
        return
    # Trials are dealt in turn, the largest first, so that the jobs take about the same time.
    files = {f"trials-{number + 1}.json": {"trials": left.trials[number::of]} for number in range(of)}
    identity = {"code": left.code, "versions": left.versions}
    measure = Jobs(
        rule="measure",
        commands=measure_commands(campaign, root, files),
        memory_mb=BASE_MB + int(PROCESSES * MEMORY_PER_BYTE * left.bytes[0] / 1e6),
        minutes=BASE_MINUTES + int(sum(left.bytes[::of]) / BYTES_PER_MINUTE),
        files={name: content | identity for name, content in files.items()},
    )
    show([f"{counted(len(left.trials), 'trial')} to measure in {counted(of, 'job')}"])
    if failed := run_jobs(measure, on, campaign.parent, again):
        listed = ", ".join(f"{number}/{of}" for number in failed)
        raise AnalysisError(f"incomplete: job {listed}; to measure the missing trials: {again}")
