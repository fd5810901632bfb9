"""Loop of all samplers; this file precedes the program of each sampler.

Arguments: INTERVAL_S READY, then the arguments of the sampler.
"""

import _signal as signal
import sys
import time


def every(sample, columns, at_end=False):
    """Write the names of the columns, then samples until SIGTERM.

    There is a sample at the start, and one after each interval; if `at_end` is true, also one after SIGTERM.
    """
    interval_ns, ready = int(float(sys.argv[1]) * 1e9), sys.argv[2]
    out, ending = sys.stdout, [signal.SIGTERM]
    out.write(columns + "\n")
    sample(out)
    # Python may call the handler of a signal within a write to `out`, and another write is refused then.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    tell_ready(ready)  # noqa: F821 - ready.py precedes this file
    due = time.monotonic_ns()
    while True:
        due += interval_ns
        rest = due - time.monotonic_ns()
        if rest < 0:
            due -= rest  # shift the schedule after a late sample, so that no burst of samples follows
        if signal.sigtimedwait(ending, max(0, rest) / 1e9):
            break
        sample(out)
    if at_end:
        sample(out)
    out.flush()
