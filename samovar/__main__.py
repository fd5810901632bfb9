"""Run the program `samovar`. Ctrl-C ends it without a traceback, even while its modules are imported."""

import sys


def main() -> None:
    """Run the command that the program's arguments name, and exit with its exit code."""
    try:
        from samovar.cli.commands import run_commands

        code = run_commands(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    main()
