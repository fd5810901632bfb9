"""Run many commands of `fab` in one process: `program.py CHECKOUT < requests.json > answers.json`.

A request is a list. `["fab", argument, ...]` runs a command and is answered with its exit code and output,
`["edit", file, old, new]` changes a file of the checkout, `["undo"]` reverts all changes, `["plan", ...]` and
`["scripts", ...]` are answered by adapter.py. The first command takes as long as a command of `fab`; each further
command takes a tenth of this time.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


class Program:
    """Commands in a checkout that no other process uses."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.originals: dict[Path, str | None] = {}

    def answer(self, request: list[str]) -> Any:
        """Return the answer to a request."""
        kind, *arguments = request
        if kind == "fab":
            return self.fab(arguments)
        if kind == "edit":
            return self.edit(*arguments)
        if kind == "undo":
            return self.undo()
        from tests.golden import adapter

        if kind == "plan":
            return adapter.plan_bytes(self.root, *arguments).decode()
        return adapter.scripts(self.root, *arguments)

    def fab(self, arguments: list[str]) -> dict[str, Any]:
        """Run a command; return its exit code and its output."""
        from samovar.cli.commands import run_commands

        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_commands(arguments, self.root)
        return {"code": code, "stdout": self._text(out), "stderr": self._text(err)}

    def _text(self, stream: io.TextIOWrapper) -> str:
        stream.flush()
        assert isinstance(stream.buffer, io.BytesIO)
        return stream.buffer.getvalue().decode().replace(str(self.root), "CHECKOUT")

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace a text in a file; a missing file is created with the new text."""
        path = self.root / name
        before = path.read_text() if path.exists() else None
        self.originals.setdefault(path, before)
        if old and (before is None or old not in before):
            raise ValueError(f"{name} does not contain {old!r}")
        path.write_text((before or "").replace(old, new) if old else new)

    def undo(self) -> None:
        """Revert every edit."""
        for path, text in self.originals.items():
            if text is None:
                path.unlink(missing_ok=True)
            else:
                path.write_text(text)
        self.originals.clear()


def main() -> None:
    """Answer the requests of standard input."""
    root = Path(sys.argv[1]).resolve()
    sys.path[0] = str(root)
    requests = json.load(sys.stdin)
    program = Program(root)
    json.dump([program.answer(request) for request in requests], sys.stdout)


if __name__ == "__main__":
    main()
