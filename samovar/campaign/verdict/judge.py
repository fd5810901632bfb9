"""The verdict on a trial: what was asked for against what was seen."""

from __future__ import annotations

import csv
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from samovar.campaign.clocks import ClockOffset, Drift
from samovar.campaign.host_state import Compared
from samovar.campaign.verdict.bounded_reading import open_lines
from samovar.experiment import Thresholds
from samovar.plan import FlowPlan, Resolved
from samovar.units import ETHERNET_MTU_BYTES

Verdict = Literal["valid", "suspect", "invalid"]
WINDOW_SHARE = Thresholds().window
HEADERS_BYTES = 52
"""What a full packet holds beside data: IPv4, TCP and the time stamps option."""
OPENED_BY = 4
"""How many windows of data a receiver may take to open its own: Linux adds up to two segments for each that
arrives in order (tcp_grow_window), FreeBSD 16 KiB for each round trip that fills what is open."""
LINUX_NAME = {"newreno": "reno"}
CONTROL_BYTES = 2000
"""More than a generator's control connection sends, such as iperf3's, which has the port of its flow."""


@dataclass(frozen=True)
class Check:
    """One comparison; `severity` is the verdict that its failure means."""

    check: str
    host: str
    requested: str
    observed: str
    ok: bool
    severity: Verdict = "invalid"

    def as_json(self) -> dict[str, object]:
        """Return the plain form that stands in the manifest."""
        return asdict(self)

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.check} at {self.host}: requested {self.requested}, observed {self.observed}"


def verdict_of(checks: Iterable[Check]) -> tuple[Verdict, tuple[str, ...]]:
    """Weigh the checks: the worst failure decides, and each failure is a reason."""
    failed = [check for check in checks if not check.ok]
    verdict: Verdict = "valid"
    if failed:
        verdict = "invalid" if any(c.severity == "invalid" for c in failed) else "suspect"
    return verdict, tuple(str(check) for check in failed)


def parse_tells(text: str) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Read what `tell` printed: the exit code of each process, and its standard error."""
    codes: dict[str, str] = {}
    complaints: dict[str, list[str]] = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        name, _, value = rest.partition(" ")
        if word == "exit":
            codes[name] = value
        elif word == "err":
            complaints.setdefault(name, []).append(value)
    return codes, complaints


def check_clients(host: str, names: Iterable[str], codes: Mapping[str, str]) -> Iterator[Check]:
    """Check that each generator ended by itself and was content."""
    for name in names:
        code = codes.get(name, "none")
        yield Check(f"exit code of {name}", host, "0", code, code == "0")


def check_captures(host: str, names: Iterable[str], complaints: Mapping[str, list[str]]) -> Iterator[Check]:
    """Check that no capture lost packets, by tcpdump's own closing counts."""
    for name in names:
        text = "\n".join(complaints.get(name, ()))
        for who in ("kernel", "interface"):
            count = _closing_count(rf"dropped by {who}", text)
            if count is None and who == "interface":
                continue  # not every libpcap counts these
            observed = "no count: the capture did not end by itself" if count is None else str(count)
            yield Check(f"packets dropped by {who} in capture {name}", host, "0", observed, count == 0)
        unread = [int(n[1]) - int(n[0]) - int(n[2]) for n in re.findall(_COUNTS, text)]
        if unread:
            yield Check(
                f"packets never read by capture {name}", host, "0", str(min(unread)), min(unread) <= 0
            )


# tcpdump tells them when it ends and, in one line, each time it is asked to, which is not before the traffic
# has ended. Once all had been read, what came later is of no trial: a kernel may keep a packet for a second
# before it hands it over.
_COUNTS = (
    r"(\d+) packets? captured[,\s]+(\d+) packets? received by filter[,\s]+(\d+) packets? dropped by kernel"
)


def _closing_count(what: str, text: str) -> int | None:
    """Read the last count of its kind that tcpdump printed: on request it prints some before."""
    counts = re.findall(rf"(\d+) packets? {what}", text)
    return int(counts[-1]) if counts else None


def check_settings(host: str, compared: Iterable[Compared]) -> Iterator[Check]:
    """Check that what was set, and read back then, still was so when the traffic had ended."""
    for one in compared:
        found = "nothing" if one.observed is None else one.observed
        yield Check(f"{one.key} after the traffic", host, one.wanted, found, one.met)


def check_starts(starts: Iterable[Mapping[str, object]], late_s: float) -> Iterator[Check]:
    """Check that each flow that began did so at its instant, by the controller's clock."""
    for start in starts:
        off_s = float(str(start["late_s"]))
        observed = f"{abs(off_s) * 1e3:.1f} ms {'late' if off_s >= 0 else 'early'}"
        label = f"start of flow {start['flow']}"
        yield Check(
            label,
            str(start["host"]),
            f"within {late_s * 1e3:g} ms",
            observed,
            abs(off_s) <= late_s,
            "suspect",
        )


def check_clocks(clocks: Iterable[ClockOffset], tolerance_s: float) -> Iterator[Check]:
    """Check that no clock is far off, nor has stepped since an earlier reading of the campaign."""
    for clock in clocks:
        asked = f"within {tolerance_s:g} s of this machine's, and steady"
        steady = "its newest reading contradicts those before" if clock.stepped else "steady"
        observed = f"{clock.offset_s * 1e3:+.1f} ms ± {clock.error_s * 1e3:.1f} ms, {steady}"
        ok = abs(clock.offset_s) <= tolerance_s and not clock.stepped
        yield Check("clock", clock.host, asked, observed, ok, "suspect")


def check_drift(clocks: Iterable[ClockOffset], most_ppm: float) -> Iterator[Check]:
    """Check that no clock runs off faster than this; only what its readings make certain counts."""
    for clock in clocks:
        asked = f"at most {most_ppm:g} ppm against this machine's"
        ok = clock.drift is None or clock.drift.least_ppm <= most_ppm
        yield Check("clock drift", clock.host, asked, _drifted(clock.drift, most_ppm), ok, "suspect")


def _drifted(drift: Drift | None, most_ppm: float) -> str:
    if drift is None:
        return "not known from its readings"
    if drift.least_ppm > most_ppm:
        return f"at least {drift.least_ppm:.1f} ppm ({drift})"
    return str(drift) if drift.most_ppm <= most_ppm else f"{drift}, too wide to tell"


def check_duration(
    flows: Iterable[FlowPlan], seconds: float, share: float = Thresholds().duration
) -> Iterator[Check]:
    """Check that the traffic lasted as long as its longest timed flow."""
    asked = [flow.start_s + flow.duration_s for flow in flows if flow.duration_s and flow.size_bytes is None]
    if asked:
        ok = seconds >= share * max(asked)
        yield Check("duration of the traffic", "all", f"{max(asked):g} s", f"{seconds:.2f} s", ok)


@dataclass
class _Seen:
    """What the samples of one flow's socket showed."""

    samples: int = 0
    cc: dict[str, frozenset[str]] = field(default_factory=dict)  # of each connection
    window_bytes: int = 0
    acked: dict[str, int] = field(default_factory=dict)  # bytes, of each connection that tells

    @property
    def acked_bytes(self) -> int | None:
        """What the busiest connection had acknowledged; None where the samples do not tell."""
        return max(self.acked.values(), default=None)

    def controls(self, *, of_data: bool) -> frozenset[str]:
        """Return the congestion controls in force: of all connections, or of those that carry the data."""
        busy = [one for one in self.cc if self.acked.get(one, CONTROL_BYTES) >= CONTROL_BYTES]
        return frozenset[str]().union(*(self.cc[one] for one in (busy if of_data else self.cc)))


def check_sockets(resolved: Resolved, host: str, trace: Path) -> Iterator[Check]:
    """Check congestion control in force and largest window offered, by the sender's TCP_INFO."""
    flows = {(flow.from_address, flow.to_address, str(flow.port)) for flow in resolved.flows}
    try:
        seen = _sockets(trace, flows)
    except (OSError, EOFError, ValueError, KeyError, csv.Error, zlib.error) as error:
        yield Check(f"trace {trace.name}", host, "readable", f"{type(error).__name__}: {error}", False)
        return
    for flow in resolved.flows:
        if flow.from_host != host:
            continue
        found = seen.get((flow.from_address, flow.to_address, str(flow.port)), _Seen())
        yield Check(f"samples of flow {flow.label}", host, "some", str(found.samples), found.samples > 0)
        if found.samples:
            yield from _socket_checks(resolved, flow, host, found)


def _socket_checks(resolved: Resolved, flow: FlowPlan, host: str, found: _Seen) -> Iterator[Check]:
    asked = flow.cc or resolved.hosts[host].cc
    if asked is not None:
        cc, own = LINUX_NAME.get(asked, asked), resolved.hosts[host].cc
        seen = found.controls(of_data=asked != own)  # a control connection has its host's
        if seen:
            label = f"congestion control of flow {flow.label}"
            yield Check(label, host, cc, ", ".join(sorted(seen)), seen == {cc})
    if found.window_bytes:
        yield from check_window(resolved, flow, found.window_bytes, found.acked_bytes)


def check_window(
    resolved: Resolved,
    flow: FlowPlan,
    window_bytes: int,
    moved_bytes: int | None = None,
    share: float = WINDOW_SHARE,
) -> Iterator[Check]:
    """Check the largest window that a flow's sender saw against what its receiver was to offer.

    One that never comes near what was asked, by a share of it, may not have been exercised at all; but it
    opens with the data that comes, so a flow that sent little is not judged by it.
    """
    rwnd = resolved.window_bytes(flow)
    if rwnd is None:
        return
    label, observed = f"largest window offered to flow {flow.label}", f"{window_bytes} B"
    yield Check(label, flow.to_host, f"at most {rwnd} B", observed, window_bytes <= rwnd)
    if moved_bytes is not None and moved_bytes < OPENED_BY * rwnd:
        return
    least_bytes, asked = _least_window(resolved, flow, rwnd, share)
    yield Check(label, flow.to_host, asked, observed, window_bytes >= least_bytes, "suspect")


def _least_window(resolved: Resolved, flow: FlowPlan, rwnd: int, share: float) -> tuple[float, str]:
    """Give what a window must come to, and say it: a share, or of few segments all but one.

    Whole segments are offered below 64 KB, and where the buffer decides the last is left out until one was
    lost (docs/decisions/0007-receive-window.md).
    """
    host = resolved.hosts.get(flow.to_host)
    mtu_bytes = (host.mtu_bytes if host else None) or ETHERNET_MTU_BYTES
    segment_bytes = mtu_bytes - HEADERS_BYTES
    but_one_bytes = max(rwnd // segment_bytes - 1, 0) * segment_bytes
    if but_one_bytes < share * rwnd:
        return but_one_bytes, f"at least {but_one_bytes} B of {rwnd} B, all segments but one"
    return share * rwnd, f"at least {share:.0%} of {rwnd} B"


def _sockets(trace: Path, flows: set[tuple[str, str, str]]) -> dict[tuple[str, str, str], _Seen]:
    seen: dict[tuple[str, str, str], _Seen] = {}
    with open_lines(trace) as file:
        for row in csv.DictReader(file):
            # The sender of the data is the one that listens where the receiver asks for it.
            ports = (row["dport"], row.get("sport", ""))
            key = next((k for port in ports if (k := (row["src"], row["dst"], port)) in flows), None)
            if key is not None and row["cc"]:
                entry = seen.setdefault(key, _Seen())
                entry.samples += 1
                connection = f"{row.get('sport', '')} {row['dport']}"
                entry.cc[connection] = entry.cc.get(connection, frozenset()) | {row["cc"]}
                entry.window_bytes = max(entry.window_bytes, int(row["snd_wnd_bytes"] or 0))
                if row.get("bytes_acked"):
                    entry.acked[connection] = max(entry.acked.get(connection, 0), int(row["bytes_acked"]))
    return seen
