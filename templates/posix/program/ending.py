"""Let a program notice SIGTERM while it waits in select(); precedes the program."""

import _signal
import posix


def end_pipe():
    """Return a file descriptor that SIGTERM makes readable."""
    ended, end = posix.pipe()
    posix.set_blocking(end, False)
    _signal.set_wakeup_fd(end)
    # The handler does nothing, because Python may call it within a write to standard output.
    _signal.signal(_signal.SIGTERM, lambda *_: None)
    return ended


