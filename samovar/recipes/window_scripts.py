"""Receive windows on kernels that derive them from the buffer: scripts that probe and fit the buffer.

Linux from 6.7 on advertises a share of the receive buffer, in 256ths: the payload of a segment divided by the
memory that the segment takes (net/ipv4/tcp_input.c, tcp_measure_rcv_mss). Setting `rwnd` limits the window by
a route as on older kernels; then the share is measured by one connection (`step/window`), and block `fit` of
`rwnd` sets the buffer of which this share is the requested window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from samovar.recipes.calibration_scripts import ProbeScripts
from samovar.recipes.quoting import window_floor
from samovar.recipes.scripts import TrialScripts

WHOLE = 256
"""The share of the buffer is in units of 1/256."""
FIRST_PORT = 5301
PROBE_BYTES = 1 << 14
"""About the first flight of a connection: its first full segment decides."""


@dataclass(frozen=True)
class WindowProbe:
    """A receive window between two hosts, and the addresses between which it is probed."""

    sender: str
    receiver: str
    source: str
    address: str
    window_bytes: int

    @property
    def target_bytes(self) -> int:
        """The largest window that can be advertised and does not exceed the requested one."""
        return window_floor(self.window_bytes)


class WindowFit(NamedTuple):
    """A script that sets the receive buffer of a host; its output is `MINIMUM BUFFER BUFFER` in bytes."""

    buffer_bytes: int
    script: str


def window_probes(scripts: TrialScripts) -> tuple[WindowProbe, ...]:
    """Return the windows of a trial that may need a fitted buffer, one for each pair of addresses."""
    probes: dict[tuple[str, str], WindowProbe] = {}
    for flow, recipe in ((ends.flow, ends.recipe) for ends in scripts.flows):
        window_bytes = scripts.resolved.window_bytes(flow)
        if window_bytes is None or recipe.header.transport != "tcp":
            continue
        if "fit" in scripts.catalogue.recipe("setting", "rwnd", scripts.system(flow.to_host)).blocks:
            ends = flow.from_host, flow.to_host, flow.from_address, flow.to_address
            probes.setdefault(ends[2:], WindowProbe(*ends, window_bytes))
    return tuple(probes.values())


def window_share(clamp_bytes: int, buffer_bytes: int) -> int | None:
    """Return the share of a buffer that a kernel counts as window, in 256ths; None if it is no such share."""
    share = round(clamp_bytes * WHOLE / buffer_bytes) if buffer_bytes > 0 else 0
    exact = 0 < share < WHOLE and buffer_bytes * share // WHOLE == clamp_bytes
    return share if exact else None


def render_window_probe(
    scripts: TrialScripts, probe: WindowProbe, limit_s: float, before: Mapping[str, Mapping[str, str]]
) -> ProbeScripts:
    """Return the scripts of a probe: one connection, on a port that no flow of the trial uses.

    Either end waits for the other for at most limit_s. Both hosts, whose state was `before`, then forget what
    the connection has taught their TCP.
    """
    used = {ends.flow.port + offset for ends in scripts.flows for offset in ends.recipe.header.ports}
    values: Mapping[str, object] = {
        "name": "window",
        "address": probe.address,
        "source": probe.source,
        "port": next(port for port in count(FIRST_PORT) if port not in used),
        "limit_s": limit_s,
        "size_bytes": PROBE_BYTES,
    }

    def body(host: str, block: str) -> str:
        return scripts.catalogue.recipe("step", "window", scripts.system(host)).render(block, values)

    def forget(host: str) -> str:
        return scripts.setting_body(host, "tcp", "set", {"was": before[host]}) if host in before else ""

    sender, receiver = probe.sender, probe.receiver
    collect = body(receiver, "collect")
    return ProbeScripts(
        receive=scripts.script(receiver, (body(receiver, "receive"),)),
        send=scripts.script(sender, (body(sender, "script"), forget(sender))),
        collect=scripts.script(receiver, (collect, forget(receiver))),
        abandon=scripts.script(receiver, ("halt window\n", collect)),
    )


def fit_windows(scripts: TrialScripts, shares: Mapping[WindowProbe, int]) -> dict[str, WindowFit]:
    """Return, for each receiving host, the script that fits its buffer to the measured shares.

    `shares` maps the probes of a trial to the share of the buffer that is window, in 256ths. A host has one
    buffer for all senders: the smallest, so that no window exceeds the requested one.
    """
    buffers: dict[str, int] = {}
    for probe, share in shares.items():
        size_bytes = -(-probe.target_bytes * WHOLE // share)
        buffers[probe.receiver] = min(size_bytes, buffers.get(probe.receiver, size_bytes))
    fits = {}
    for host, size_bytes in buffers.items():
        recipe = scripts.catalogue.recipe("setting", "rwnd", scripts.system(host))
        script = scripts.script(host, (recipe.render("fit", {"buffer_bytes": size_bytes}),))
        fits[host] = WindowFit(size_bytes, script)
    return fits
