"""Write the golden files of tests/golden/commands again: `python tests/golden/regenerate.py`, then read `git diff`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.golden.goldens import COMMANDS, make_goldens


def main() -> None:
    """Replace all golden files; those of experiments that are gone are removed."""
    with tempfile.TemporaryDirectory() as folder:
        files = make_goldens(Path(folder))
    for path in [*COMMANDS.glob("text/*"), *COMMANDS.glob("values/*")]:
        if str(path.relative_to(COMMANDS)) not in files:
            path.unlink()
    for name, text in files.items():
        path = COMMANDS / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


if __name__ == "__main__":
    main()
