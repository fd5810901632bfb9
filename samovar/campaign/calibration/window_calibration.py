"""Find the socket buffer that gives a requested receive window, on kernels that derive one from the other."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from samovar.campaign.calibration.cache import ATTEMPTS, CalibrationCache
from samovar.campaign.context import CampaignContext
from samovar.errors import TestbedError
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
REPORT = re.compile(r"^window (\d+) (\d+) (\d+)$", re.MULTILINE)
WAITS = 4
"""An end may wait for the other this many times within the time limit of a step."""
ROUTE_WINDOW = 0
"""The ratio of a kernel that offers the route's window, whatever the buffer."""


@dataclass(frozen=True)
class WindowResult:
    """The result of one probe: window by buffer in 256ths, or None and the reason in `left_out`."""

    ratio: int | None
    left_out: str = ""
    clamp_bytes: int = 0
    buffer_bytes: int = 0
    segment_bytes: int = 0


def parse_window(probe: WindowProbe, text: str) -> WindowResult:
    """Read the receiver's report of a closed connection, a line `window CLAMP BUFFER SEGMENT`."""
    report = REPORT.search(text)
    if report is None:
        return _left_out(probe.receiver, text)
    clamp, size, segment = map(int, report.groups())
    ratio = ROUTE_WINDOW if clamp == probe.target_bytes else window_share(clamp, size)
    reason = f"{probe.receiver}: a window of {clamp} B is not a share of the buffer of {size} B"
    return WindowResult(ratio, "" if ratio is not None else reason, clamp, size, segment)


def _left_out(host: str, text: str) -> WindowResult:
    reason = text.partition(LEFT_OUT)[2].strip() or "the connection reported no window"
    return WindowResult(None, f"{host}: {reason}")


class WindowCalibration:
    """The windows of one trial after another, each probed once for the same ends, settings and boots."""

    def __init__(self, context: CampaignContext) -> None:
        self._context, self._cache = context, CalibrationCache(context)
        self._ratios: dict[str, int] = {}
        self._tries = Counter[str]()

    def probes(self, scripts: TrialScripts) -> dict[str, WindowProbe]:
        """Return the windows of a trial that depend on a buffer, by the name of their calibration file."""
        return {self._name(scripts, probe): probe for probe in window_probes(scripts)}

    def due(self, probes: Mapping[str, WindowProbe]) -> list[str]:
        """Return the names of the windows that must be probed, except those that failed too often."""
        for name in probes:
            if name not in self._ratios and (stored := self._cache.read(name)) is not None:
                self._ratios[name] = int(stored["ratio"])
        return [name for name in probes if name not in self._ratios and self._tries[name] < ATTEMPTS]

    def fits(self, scripts: TrialScripts, probes: Mapping[str, WindowProbe]) -> dict[str, WindowFit]:
        """Return the script for each host whose receive buffer must be set before a server listens."""
        ratios = {probe: self._ratios.get(name) for name, probe in probes.items()}
        return fit_windows(scripts, {probe: ratio for probe, ratio in ratios.items() if ratio})

    def measure(
        self, scripts: TrialScripts, name: str, probe: WindowProbe, before: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Probe a window on hosts that are set for a trial, and store the result.

        `before` is the state of each host before the trial. Raises TestbedError.
        """
        started_s = time.time()
        result = self._probe(scripts, probe, before)
        self._tries[name] += 1
        stored: dict[str, object] = {}
        if result.ratio is not None:
            self._ratios[name] = result.ratio
            values = {
                "t_start_s": round(started_s, 6),
                "trial": scripts.trial.id,
                "mtu_bytes": scripts.resolved.mtu_bytes,
                **asdict(probe),
                **{key: value for key, value in asdict(result).items() if key != "left_out"},
            }
            stored = {"ratio": result.ratio, **self._cache.write(name, values)}
        self._context.report(
            "window-measured",
            trial=scripts.trial.id,
            host=probe.receiver,
            sender=probe.sender,
            seconds=round(time.time() - started_s, 3),
            left_out=[result.left_out] if result.left_out else [],
            **stored,
        )

    def _name(self, scripts: TrialScripts, probe: WindowProbe) -> str:
        """Return the name of a calibration file: a hash of what decides how much memory segments take."""
        hosts = []
        for host in (probe.sender, probe.receiver):
            plan = scripts.resolved.hosts[host]
            settings = {recipe: dict(given) for recipe, given in plan.settings.items()}
            boot_id = self._cache.boot_id(host)
            hosts.append({"boot": boot_id, "mtu_bytes": plan.mtu_bytes, "settings": settings})
        inputs = {
            "ends": [probe.sender, probe.receiver, probe.source, probe.address],
            "mtu_bytes": scripts.resolved.mtu_bytes,
            "hosts": hosts,
        }
        return f"window-{self._cache.key(inputs)}"

    def _probe(
        self, scripts: TrialScripts, probe: WindowProbe, before: Mapping[str, Mapping[str, str]]
    ) -> WindowResult:
        """Send full segments over one connection and read the window that the receiver derived from them."""
        limit_s = self._context.policy.step_timeout_s
        texts = render_window_probe(scripts, probe, limit_s / WAITS, before)

        def run(host: str, text: str) -> str:
            return self._context.sessions.run({host: text}, "window", limit_s)[host].text

        printed = run(probe.receiver, texts.receive)
        if printed.startswith(LEFT_OUT):
            return _left_out(probe.receiver, printed)
        printed = run(probe.sender, texts.send)
        if LEFT_OUT in printed:
            run(probe.receiver, texts.abandon)
            return _left_out(probe.sender, printed)
        return parse_window(probe, run(probe.receiver, texts.collect))


def check_fits(fits: Mapping[str, WindowFit], printed: Mapping[str, str]) -> None:
    """Raise TestbedError for a host that did not print the buffer it was given."""
    for host, fit in fits.items():
        if printed[host].split()[1:] != [str(fit.buffer_bytes)] * 2:
            found = printed[host].strip()
            raise TestbedError(f"{host}: requested a receive buffer of {fit.buffer_bytes} B, found {found}")
