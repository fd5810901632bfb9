"""Receive windows on kernels that work them out from the buffer: what is probed, and the buffer that fits.

Linux from 6.7 on counts a share of the receive buffer as window, in 256ths: what a segment has of data of the
memory that it takes (net/ipv4/tcp_input.c, tcp_measure_rcv_mss). Recipes of such systems have a block `fit`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count

from samovar.recipes.quoting import window_floor
from samovar.recipes.scripts import TrialScripts

SETTING, STEP, NAME = "rwnd", "window", "window"
WHOLE = 256
"""What the share of the buffer is a part of."""
FIRST_PORT = 5301
PROBE_BYTES = 1 << 14
"""What decides is the first full segment; a first flight holds about so much."""


@dataclass(frozen=True)
class WindowProbe:
    """A window that a receiver is to open to a sender, and a way that data take between them."""

    sender: str
    receiver: str
    source: str
    address: str
    window_bytes: int

    @property
    def target_bytes(self) -> int:
        """The largest window that can be offered and does not exceed what is asked."""
        return window_floor(self.window_bytes)


@dataclass(frozen=True)
class WindowScripts:
    """The bodies of the probe's scripts, in the order in which they run; each follows the prelude."""

    receive: str
    send: str
    collect: str

    @property
    def abandon(self) -> str:
        """End the receiver, to whom nobody came."""
        return f"halt {NAME}\n{self.collect}"


def window_probes(scripts: TrialScripts) -> tuple[WindowProbe, ...]:
    """List the windows of a trial that a buffer may have to be fitted to, each way once."""
    found: dict[tuple[str, str], WindowProbe] = {}
    for ends in scripts.flows:
        flow = ends.flow
        window = scripts.resolved.window_bytes(flow)
        if window is not None and ends.recipe.header.transport == "tcp" and _fits(scripts, flow.to_host):
            one = WindowProbe(flow.from_host, flow.to_host, flow.from_address, flow.to_address, window)
            found.setdefault((flow.from_address, flow.to_address), one)
    return tuple(found.values())


def _fits(scripts: TrialScripts, host: str) -> bool:
    return "fit" in scripts.catalogue.recipe("setting", SETTING, _system(scripts, host)).blocks


def window_share(clamp_bytes: int, buffer_bytes: int) -> int | None:
    """Return the share of a buffer that a kernel counts as window, in 256ths; None where it is none."""
    ratio = round(clamp_bytes * WHOLE / buffer_bytes) if buffer_bytes > 0 else 0
    exact = 0 < ratio < WHOLE and buffer_bytes * ratio // WHOLE == clamp_bytes
    return ratio if exact else None


def buffer_bytes_of(target_bytes: int, ratio: int) -> int:
    """Return the least buffer of whose bytes a share, in 256ths, is exactly the window."""
    return -(-target_bytes * WHOLE // ratio)


def fitted_buffers(fitted: Iterable[tuple[WindowProbe, int]]) -> dict[str, int]:
    """Return the buffer of each host that receives, by its windows and the share that is window.

    A host has one buffer for whoever sends to it: the least, so that no window exceeds what is asked.
    """
    found: dict[str, int] = {}
    for opening, ratio in fitted:
        size = buffer_bytes_of(opening.target_bytes, ratio)
        found[opening.receiver] = min(size, found.get(opening.receiver, size))
    return found


def render_window_probe(scripts: TrialScripts, opening: WindowProbe, limit_s: float) -> WindowScripts:
    """Render the probe of a window: one connection that nothing else of the trial meets."""
    values: Mapping[str, object] = {
        "name": NAME,
        "address": opening.address,
        "source": opening.source,
        "port": _free_port(scripts),
        "limit_s": limit_s,
        "size_bytes": PROBE_BYTES,
    }
    receive, send, collect = (
        scripts.catalogue.recipe("step", STEP, _system(scripts, host)).render(block, values)
        for host, block in (
            (opening.receiver, "receive"),
            (opening.sender, "script"),
            (opening.receiver, "collect"),
        )
    )
    return WindowScripts(receive, send, collect)


def _free_port(scripts: TrialScripts) -> int:
    taken = {ends.flow.port + more for ends in scripts.flows for more in ends.recipe.header.ports}
    return next(port for port in count(FIRST_PORT) if port not in taken)


def forgetting(scripts: TrialScripts, host: str, was: Mapping[str, str]) -> str:
    """Give the text by which a host forgets what a connection has taught its TCP, as before each trial."""
    return _rendered(scripts, host, "tcp", "set", {"was": was})


def fitting(scripts: TrialScripts, host: str, buffer_bytes: int) -> str:
    """Give the text by which sockets have a buffer from now on, and which prints it then."""
    return _rendered(scripts, host, SETTING, "fit", {"buffer_bytes": buffer_bytes}, most=1)


def _rendered(
    scripts: TrialScripts,
    host: str,
    name: str,
    block: str,
    more: Mapping[str, object],
    most: int | None = None,
) -> str:
    recipe = scripts.catalogue.recipe("setting", name, _system(scripts, host))
    chosen = [setting for setting in scripts.settings(host) if setting.recipe == name][:most]
    return "".join(recipe.render(block, {**setting.values, **more}) for setting in chosen)


def _system(scripts: TrialScripts, host: str) -> str:
    return scripts.resolved.hosts[host].system
