"""Write the golden files in tests/golden/commands and tests/golden/campaign again; check the changes with `git diff`."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden.campaign import GOLDEN, make_campaign
from tests.golden.goldens import COMMANDS, make_goldens


def main() -> None:
    """Write the golden files of the group that the command line names, or of both groups."""
    writers = {"commands": write_commands, "campaign": write_campaign}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("which", nargs="?", choices=writers, help="both by default")
    which = parser.parse_args().which
    for name in [which] if which else writers:
        writers[name]()


def write_commands() -> None:
    """Write the outputs of commands; files of experiments that no longer exist are removed."""
    with tempfile.TemporaryDirectory() as folder:
        files = make_goldens(Path(folder))
    for path in [*COMMANDS.glob("text/*"), *COMMANDS.glob("values/*")]:
        if str(path.relative_to(COMMANDS)) not in files:
            path.unlink()
    for name, text in files.items():
        path = COMMANDS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def write_campaign() -> None:
    """Write the outputs for the recorded campaign, without measured values, which are part of the recording."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_campaign(Path(folder))
    GOLDEN.mkdir(exist_ok=True)
    (GOLDEN / "values.json").write_text(made.values)
    (GOLDEN / "text.txt").write_text(made.text)


if __name__ == "__main__":
    main()
