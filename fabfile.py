"""The tasks of `fab`, the same as the commands of `samovar`."""

from pathlib import Path

from samovar.cli.fab import fab_tasks

namespace = fab_tasks(Path(__file__).resolve().parent)
