"""The program `samovar`; Ctrl-C ends it without a traceback even while it is being imported."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
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
