"""Render all scripts of a trial for one host, by the name of the phase that runs each script."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from samovar.recipes.scripts import TrialScripts

NO_OFFERS: Mapping[str, str] = {}
NO_CLOCK_LIMIT_S = 1e9


def host_phases(
    made: TrialScripts,
    host: str,
    was: Mapping[str, str],
    t0_ns: int,
    offers: Mapping[str, str] = NO_OFFERS,
    *,
    free_bytes: int = 0,
    step_s: float = NO_CLOCK_LIMIT_S,
) -> Mapping[str, Callable[[], str | None]]:
    """Return for each phase a function that renders the phase's script, or returns None if there is none.

    `was` is the state before the trial, `t0_ns` second 0 of the traffic by the host's clock. For the other
    arguments, see TrialScripts.arm and TrialScripts.traffic.
    """
    return {
        "read": lambda: made.read(host),
        "read lasting": lambda: made.read(host, lasting=True),
        "set": lambda: made.set(host, was),
        "set lasting": lambda: made.set(host, was, lasting=True),
        "expected state": lambda: "".join(f"{line}\n" for line in made.wanted(host)),
        "offer": lambda: made.offer(host),
        "arm": lambda: made.arm(host, offers),
        "clock": lambda: made.clock(host),
        "traffic": lambda: made.traffic(host, t0_ns, free_bytes, step_s),
        "continue watching": lambda: made.follow(host, t0_ns),
        "stop": lambda: made.stop(host),
        "stop after an interrupt": lambda: made.stop(host, broken_off=True),
        "finish": lambda: made.finish(host, was),
        "restore": lambda: made.restore(host, was),
        "restore after an interrupt": lambda: made.restore(host, was, deletes=True),
        "restore lasting": lambda: made.restore(host, was, lasting=True),
        "restore without a controller": lambda: made.on_loss(host, was),
        "sweep": lambda: made.sweep(host),
        "reboot": lambda: made.reboot(host),
    }
