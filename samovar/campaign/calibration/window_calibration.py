"""Receive windows on kernels where a buffer decides them: measured once, then fitted before each trial."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from samovar.campaign.calibration.cache import ATTEMPTS, CalibrationCache
from samovar.campaign.context import CampaignContext
from samovar.errors import TestbedError
from samovar.events import Event
from samovar.recipes import (
    TrialScripts,
    WindowFit,
    WindowProbe,
    fit_windows,
    render_window_probe,
    window_probes,
    window_share,
)

LEFT_OUT = "left out: "
TOLD = re.compile(r"^window (\d+) (\d+) (\d+)$", re.MULTILINE)
WAITS = 4
"""How many times an end may wait for the other within the time that a step has."""
KEPT = 0
"""Stands for the ratio of a kernel that keeps the window of the route, whatever the buffer."""


@dataclass(frozen=True)
class WindowResult:
    """What a connection showed of its receiver: `ratio` in 256ths of the buffer; None with the reason why."""

    ratio: int | None
    left_out: str = ""
    clamp_bytes: int = 0
    buffer_bytes: int = 0
    segment_bytes: int = 0


def parse_window(opening: WindowProbe, seen: str) -> WindowResult:
    """Read what a receiver told of a connection that is over: a line `window CLAMP BUFFER SEGMENT`."""
    found = TOLD.search(seen)
    if found is None:
        return WindowResult(None, f"{opening.receiver}: {_reason(seen)}")
    clamp, size, segment = map(int, found.groups())
    ratio = KEPT if clamp == opening.target_bytes else window_share(clamp, size)
    why = "" if ratio is not None else f"{opening.receiver}: {clamp} B are no share of a buffer of {size} B"
    return WindowResult(ratio, why, clamp, size, segment)


def _reason(said: str) -> str:
    return said.partition(LEFT_OUT)[2].strip() or "the connection told nothing"


class WindowCalibration:
    """What is known of the windows of a campaign's hosts since they last booted."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context
        self._kept = CalibrationCache(context)
        self._ratios: dict[str, int] = {}
        self._tries = Counter[str]()

    def due(self, scripts: TrialScripts) -> tuple[WindowProbe, ...]:
        """List the windows of a trial that nothing is known of yet, unless it was tried often enough."""
        return tuple(one for one in window_probes(scripts) if self._unknown(self._digest(scripts, one)))

    def measure(self, scripts: TrialScripts, before: Mapping[str, Mapping[str, str]]) -> None:
        """Find out how the hosts of a trial that is set come to the windows that are due, and write it down.

        `before` is the state in which the hosts were found. Raises TestbedError.
        """
        for opening in self.due(scripts):
            started_s = time.time()
            probed = self._probe(scripts, opening, before)
            digest = self._digest(scripts, opening)
            self._tries[digest] += 1
            if probed.ratio is not None:
                self._ratios[digest] = probed.ratio
            self._note(scripts, opening, probed, started_s)

    def fits(self, scripts: TrialScripts) -> dict[str, WindowFit]:
        """Return the script for each host whose buffer must be fitted before anything of a trial listens."""
        ratios = {one: self._ratios.get(self._digest(scripts, one)) for one in window_probes(scripts)}
        return fit_windows(scripts, {one: ratio for one, ratio in ratios.items() if ratio})

    def check(self, fits: Mapping[str, WindowFit], printed: Mapping[str, str]) -> None:
        """Raise TestbedError for a host that did not print the buffer it was given."""
        for host, fit in fits.items():
            if printed[host].split()[1:] != [str(fit.buffer_bytes)] * 2:
                raise TestbedError(
                    f"{host}: asked for a buffer of {fit.buffer_bytes} B, found {printed[host].strip()}"
                )

    def _unknown(self, digest: str) -> bool:
        told = None if digest in self._ratios else self._kept.read(digest)
        if told is not None:
            self._ratios[digest] = int(told["ratio"])
        return digest not in self._ratios and self._tries[digest] < ATTEMPTS

    def _digest(self, scripts: TrialScripts, opening: WindowProbe) -> str:
        """Name what decides how much of a receiver's memory the segments of a sender take."""
        resolved = scripts.resolved
        told = {
            "ends": [opening.sender, opening.receiver, opening.source, opening.address],
            "mtu_bytes": resolved.mtu_bytes,
            "hosts": [self._host(scripts, name) for name in (opening.sender, opening.receiver)],
        }
        return f"window-{self._kept.digest(told)}"

    def _host(self, scripts: TrialScripts, name: str) -> Mapping[str, object]:
        plan = scripts.resolved.hosts[name]
        settings = {recipe: dict(given) for recipe, given in plan.settings.items()}
        return {"boot": self._kept.boot(name), "mtu_bytes": plan.mtu_bytes, "settings": settings}

    def _probe(
        self, scripts: TrialScripts, opening: WindowProbe, before: Mapping[str, Mapping[str, str]]
    ) -> WindowResult:
        """Let one connection carry full segments, and look what its receiver made of them."""
        texts = render_window_probe(scripts, opening, self._context.policy.step_timeout_s / WAITS, before)
        sender, receiver = opening.sender, opening.receiver
        said = self._run(receiver, texts.receive)
        if said.startswith(LEFT_OUT):
            return WindowResult(None, f"{receiver}: {_reason(said)}")
        sent = self._run(sender, texts.send)
        if LEFT_OUT in sent:
            self._run(receiver, texts.abandon)
            return WindowResult(None, f"{sender}: {_reason(sent)}")
        return parse_window(opening, self._run(receiver, texts.collect))

    def _run(self, host: str, text: str) -> str:
        limit_s = self._context.policy.step_timeout_s
        done = self._context.sessions.map(lambda s: s.run(text, step="window", deadline_s=limit_s), (host,))
        return done[host].text

    def _note(
        self, scripts: TrialScripts, opening: WindowProbe, probed: WindowResult, started_s: float
    ) -> None:
        values: dict[str, object] = {
            "trial": scripts.trial.id,
            "host": opening.receiver,
            "sender": opening.sender,
            "seconds": round(time.time() - started_s, 3),
            "left_out": [probed.left_out] if probed.left_out else [],
        }
        if probed.ratio is not None:
            values |= {"ratio": probed.ratio, **self._write(scripts, opening, probed, started_s)}
        self._context.note("window-measured", **values)
        self._context.emit(Event("window-measured", values))

    def _write(
        self, scripts: TrialScripts, opening: WindowProbe, probed: WindowResult, started_s: float
    ) -> Mapping[str, str]:
        told = {
            "t_start_s": round(started_s, 6),
            "trial": scripts.trial.id,
            "mtu_bytes": scripts.resolved.mtu_bytes,
            **asdict(opening),
            **{name: value for name, value in asdict(probed).items() if name != "left_out"},
        }
        return self._kept.write(self._digest(scripts, opening), told)
