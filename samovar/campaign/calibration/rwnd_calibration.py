"""Find the receive buffer for a requested receive window, on kernels that derive the window from the buffer.

Since version 6.7, Linux advertises a share of the receive buffer as the window. The share is the payload of a
segment divided by the memory that the segment takes, in 256ths (net/ipv4/tcp_input.c, tcp_measure_rcv_mss).
First, the setting `rwnd` limits the window in the route, as on older kernels. Then one connection measures
the advertised share (recipe `step/window`). The block `fit` of the recipe `rwnd` sets the buffer to the
requested window divided by the measured share.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import count

from samovar.campaign.calibration.cache import ATTEMPTS, cache_key, read_result, write_result
from samovar.campaign.context import CampaignContext
from samovar.recipes import ProbeScripts, TrialScripts, window_floor

WHOLE = 256
"""The denominator of the share: kernels count it in 256ths of the buffer."""
FIRST_PORT = 5301
PROBE_BYTES = 1 << 14
"""A probe sends this many bytes, about an initial congestion window. The first full segment determines the
share."""
LEFT_OUT = "left out: "
REPORT = re.compile(r"^window (\d+) (\d+) (\d+)$", re.MULTILINE)
WAITS = 4
"""A probe's sender and receiver wait for each other at most the time limit of a step divided by this."""
ROUTE_WINDOW = 0
"""The ratio that is stored if the kernel advertises the route's window, whatever the size of the buffer."""


@dataclass(frozen=True)
class WindowProbe:
    """A requested receive window, and the two hosts and addresses between which a connection probes it.

    `mss_bytes` is the segment size that the flow's generator sets, or 0 if it sets none.
    """

    sender: str
    receiver: str
    source: str
    address: str
    window_bytes: int
    mss_bytes: int = 0

    @property
    def target_bytes(self) -> int:
        """The largest window that does not exceed the requested one and that window scaling can express."""
        return window_floor(self.window_bytes)


def window_probes(scripts: TrialScripts) -> tuple[WindowProbe, ...]:
    """Return a probe for each two addresses and segment size with flows that may need fitted buffers."""
    probes: dict[tuple[str, str, int], WindowProbe] = {}
    for pair in scripts.flows:
        flow, recipe, mss = pair.flow, pair.recipe, pair.parameters.get("mss")
        window_bytes = scripts.resolved.window_bytes(flow)
        if window_bytes is None or recipe.header.transport != "tcp":
            continue
        if "fit" in scripts.catalogue.recipe("setting", "rwnd", scripts.system(flow.to_host)).blocks:
            ends = flow.from_host, flow.to_host, flow.from_address, flow.to_address
            mss_bytes = mss if isinstance(mss, int) else 0
            probes.setdefault((*ends[2:], mss_bytes), WindowProbe(*ends, window_bytes, mss_bytes))
    return tuple(probes.values())


def window_share(clamp_bytes: int, buffer_bytes: int) -> int | None:
    """Return the window's share of the buffer in 256ths; None if this is not a whole number."""
    share = round(clamp_bytes * WHOLE / buffer_bytes) if buffer_bytes > 0 else 0
    exact = 0 < share < WHOLE and buffer_bytes * share // WHOLE == clamp_bytes
    return share if exact else None


def render_window_probe(
    scripts: TrialScripts, probe: WindowProbe, limit_s: float, before: Mapping[str, Mapping[str, str]]
) -> ProbeScripts:
    """Return the scripts of a window probe: one connection, on a port that no flow of the trial uses.

    Sender and receiver wait for each other at most `limit_s`. Afterwards sender and receiver clear the TCP
    metrics that they cached from the connection. `before` has the states of hosts before the trial.
    """
    used = {ends.flow.port + offset for ends in scripts.flows for offset in ends.recipe.header.ports}
    values: Mapping[str, object] = {
        "name": "window",
        "address": probe.address,
        "source": probe.source,
        "port": next(port for port in count(FIRST_PORT) if port not in used),
        "limit_s": limit_s,
        "size_bytes": PROBE_BYTES,
        "mss_bytes": probe.mss_bytes,
    }
    parts = {"receive": probe.receiver, "script": probe.sender, "collect": probe.receiver}
    texts = {
        block: scripts.catalogue.recipe("step", "window", scripts.system(host)).render(block, values)
        for block, host in parts.items()
    }
    forget = {
        host: scripts.blocks(host, "set", recipe="tcp", was=before[host]) if host in before else []
        for host in (probe.sender, probe.receiver)
    }
    return ProbeScripts(
        receive=scripts.script(probe.receiver, (texts["receive"],)),
        send=scripts.script(probe.sender, (texts["script"], *forget[probe.sender])),
        collect=scripts.script(probe.receiver, (texts["collect"], *forget[probe.receiver])),
        abandon=scripts.script(probe.receiver, ("halt window\n", texts["collect"])),
    )


def fit_buffers(shares: Mapping[WindowProbe, int]) -> dict[str, int]:
    """Return, for each receiver, the receive buffer in bytes that gives the requested windows.

    `shares` maps each probe to the measured share of the buffer that the kernel advertises, in 256ths. A host
    has one buffer for all senders, so the smallest of the required buffers is used; no window then exceeds
    the requested one.
    """
    buffers: dict[str, int] = {}
    for probe, share in shares.items():
        size_bytes = -(-probe.target_bytes * WHOLE // share)
        buffers[probe.receiver] = min(size_bytes, buffers.get(probe.receiver, size_bytes))
    return buffers


def render_fit(scripts: TrialScripts, host: str, buffer_bytes: int) -> str:
    """Return the script that sets a host's receive buffer, and prints its minimum, default and maximum."""
    recipe = scripts.catalogue.recipe("setting", "rwnd", scripts.system(host))
    return scripts.script(host, (recipe.render("fit", {"buffer_bytes": buffer_bytes}),))


@dataclass(frozen=True)
class WindowResult:
    """The result of one probe. `ratio` is the window divided by the buffer, in 256ths.

    If the probe failed, `ratio` is None and `left_out` has the reason.
    """

    ratio: int | None
    left_out: str = ""
    clamp_bytes: int = 0
    buffer_bytes: int = 0
    segment_bytes: int = 0


def parse_window(probe: WindowProbe, text: str) -> WindowResult:
    """Parse the line `window CLAMP BUFFER SEGMENT` that the receiver prints after a probe."""
    report = REPORT.search(text)
    if report is None:
        return _left_out(probe.receiver, text)
    clamp, size, segment = map(int, report.groups())
    ratio = ROUTE_WINDOW if clamp == probe.target_bytes else window_share(clamp, size)
    reason = f"{probe.receiver}: a window of {clamp} B is not a whole number of 256ths of a {size} B buffer"
    return WindowResult(ratio, "" if ratio is not None else reason, clamp, size, segment)


def _left_out(host: str, text: str) -> WindowResult:
    reason = text.partition(LEFT_OUT)[2].strip() or "the connection reported no window"
    return WindowResult(None, f"{host}: {reason}")


class WindowCalibration:
    """Receive-window probes. Trials with equal endpoints, settings and boot ids share a probe."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context
        self._ratios: dict[str, int] = {}
        self._tries = Counter[str]()

    def probes(self, scripts: TrialScripts) -> dict[str, WindowProbe]:
        """Return the window probes of a trial, by the name of the calibration file for their result."""
        return {self._name(scripts, probe): probe for probe in window_probes(scripts)}

    def due(self, probes: Mapping[str, WindowProbe]) -> list[str]:
        """Return the names of probes that have no result yet and have failed fewer than ATTEMPTS times."""
        for name in probes:
            if name not in self._ratios and (stored := read_result(self._context, name)) is not None:
                self._ratios[name] = int(stored["ratio"])
        return [name for name in probes if name not in self._ratios and self._tries[name] < ATTEMPTS]

    def buffers(self, probes: Mapping[str, WindowProbe]) -> dict[str, int]:
        """Return the receive buffer in bytes to set on each receiver before its servers start listening."""
        ratios = {probe: self._ratios.get(name) for name, probe in probes.items()}
        return fit_buffers({probe: ratio for probe, ratio in ratios.items() if ratio})

    def measure(
        self, scripts: TrialScripts, name: str, probe: WindowProbe, before: Mapping[str, Mapping[str, str]]
    ) -> None:
        """Probe a window on hosts that already have the settings of a trial, and store the result.

        `before` has the states of hosts before the trial. Raises TestbedError.
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
            stored = {"ratio": result.ratio, **write_result(self._context, name, values)}
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
        """Return the name of a probe's file: a hash of everything that affects a segment's memory."""
        hosts = []
        for host in (probe.sender, probe.receiver):
            plan = scripts.resolved.hosts[host]
            settings = {recipe: dict(given) for recipe, given in plan.settings.items()}
            boot_id = self._context.boots.get(host, "")
            hosts.append({"boot": boot_id, "mtu_bytes": plan.mtu_bytes, "settings": settings})
        inputs = {
            "ends": [probe.sender, probe.receiver, probe.source, probe.address],
            "mtu_bytes": scripts.resolved.mtu_bytes,
            "hosts": hosts,
            **({"mss": probe.mss_bytes} if probe.mss_bytes else {}),
        }
        return f"window-{cache_key(self._context, inputs)}"

    def _probe(
        self, scripts: TrialScripts, probe: WindowProbe, before: Mapping[str, Mapping[str, str]]
    ) -> WindowResult:
        """Send full segments over one connection; return the window that the receiver derives."""
        limit_s = self._context.policy.config.step_timeout_s
        texts = render_window_probe(scripts, probe, limit_s / WAITS, before)

        def run(host: str, text: str) -> str:
            return self._context.sessions.run({host: text}, "window", limit_s)[host].text

        printed = run(probe.receiver, texts.receive)
        if not printed.startswith(LEFT_OUT):
            printed = run(probe.sender, texts.send)
            if LEFT_OUT in printed:
                run(probe.receiver, texts.abandon)
                return _left_out(probe.sender, printed)
            printed = run(probe.receiver, texts.collect)
        return parse_window(probe, printed)
