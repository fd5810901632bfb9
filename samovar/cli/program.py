"""Run the body of a command: print lines and events, turn errors into exit codes, handle Ctrl-C."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from samovar.campaign import EXIT_CODE, Interrupts, unrestored_lines
from samovar.cli.text import harmless
from samovar.errors import DefinitionError, SamovarError
from samovar.events import Emit, silent

if TYPE_CHECKING:
    from samovar.cli.controller import Controller
    from samovar.cli.progress import EventDisplay

STYLES = {"message": "red", "line": "default", "caret": "bold red"}


def exit_code(body: Callable[[], int | None]) -> int:
    """Run the body of a command and return its exit code; print errors without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for terminals without UTF-8
    try:
        return body() or 0
    except SamovarError as error:
        show_error(error)
    except KeyboardInterrupt as interrupt:
        show([f"interrupted; to resume: {interrupt}" if interrupt.args else "interrupted"], True)
        return EXIT_CODE
    except BrokenPipeError:
        # Nobody reads the output any more, as in `fab plan … | head`.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        show_error(SamovarError(f"{error.filename}: {reason}" if error.filename else reason))
    return 1


def show(lines: Iterable[str], to_stderr: bool = False) -> None:
    """Print lines, with control characters replaced."""
    for line in lines:
        print(harmless(line), file=sys.stderr if to_stderr else sys.stdout)


def show_json(value: object) -> None:
    """Print a value as indented JSON."""
    show([json.dumps(value, indent=1, ensure_ascii=False)])


def show_error(error: SamovarError) -> None:
    """Print an error, and the lines of files that contain it, to standard error, in colour on a terminal."""
    from rich.console import Console  # imported late, because it takes long and most commands do not need it

    console = Console(stderr=True)
    lines = error.lines(console.width) if isinstance(error, DefinitionError) else [("message", str(error))]
    for kind, line in lines:
        console.print(harmless(line), style=STYLES[kind], markup=False, highlight=False, soft_wrap=True)


@contextmanager
def event_display(
    controller: Controller, to_stderr: bool = False, also: Emit = silent, resume: str = ""
) -> Iterator[EventDisplay]:
    """Show events while the context is active.

    The first Ctrl-C ends the command cleanly; a second one ends it at once, after printing which hosts
    are left changed. Each event that is shown is also passed to the function `also`. `resume`
    is the command that resumes the running campaign, if there is one; it is printed after Ctrl-C.
    """
    from rich.console import Console

    from samovar.cli.progress import EventDisplay

    def show_unrestored() -> None:
        Console(stderr=True).show_cursor(True)  # because a progress bar hides the cursor
        show(unrestored_lines(controller.running, resume), to_stderr=True)

    try:
        with Interrupts(show_unrestored), EventDisplay(to_stderr, also) as display:
            yield display
    except KeyboardInterrupt:
        raise KeyboardInterrupt(*filter(None, [resume])) from None
