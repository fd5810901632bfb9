"""Each distinct path of a campaign, measured once before it is relied on."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from samovar.campaign.calibration.cache import ATTEMPTS, CalibrationCache
from samovar.campaign.calibration.evaluate import (
    DirectionMeasurement,
    check_calibration,
    mean_burst,
    parse_calibration,
)
from samovar.campaign.context import CampaignContext
from samovar.campaign.verdict import Check
from samovar.events import Event
from samovar.plan import DirectionPlan, PathPlan, Resolved
from samovar.recipes import (
    CalibrationScripts,
    PathDirection,
    PathProbe,
    TrialScripts,
    bottleneck_values,
    plan_probe,
    render_calibration,
    sampling_s,
)

PORT = 5300
SAMPLER, RECEIVER = "calibrate-queue", "calibrate"
FILES = f"{RECEIVER}.* {RECEIVER}-burst.* {RECEIVER}-paced.*"
MOST_PACED_S = 5.0
PACED_PACKETS, LOSSLESS_PACKETS = 2000, 500


@dataclass(frozen=True)
class Endpoints:
    """Two hosts on either side of the bottleneck: a way through it, from one to an address of the other."""

    sender: str
    receiver: str
    address: str


@dataclass(frozen=True)
class PathResult:
    """What came of measuring a path: the checks of both ways, and what of it was not measured, and why."""

    checks: tuple[Check, ...]
    left_out: tuple[str, ...] = ()
    seen: Mapping[str, object] = field(default_factory=dict)

    @property
    def refusal(self) -> tuple[str, ...]:
        """Say why trials on this path are not worth starting; nothing when they are."""
        bad = (check for check in self.checks if not check.ok and check.severity == "invalid")
        return tuple(f"the path is not as asked for: {check}" for check in bad)


class PathCalibration:
    """The paths of a campaign that are known; what was measured before the hosts last booted is not."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context
        self._kept = CalibrationCache(context)
        self._known: dict[str, PathResult] = {}

    def known(self, resolved: Resolved) -> PathResult | None:
        """Return what came of measuring the path of a trial; None when it was not yet."""
        if not self._context.policy.calibrate or resolved.path is None or not resolved.path.router:
            return None
        digest = self._digest(resolved)
        if digest not in self._known:
            self._load(digest)
        return self._known.get(digest)

    def refusal(self, resolved: Resolved) -> tuple[str, ...]:
        """Say why a trial is not worth starting, by what is known of its path."""
        known = self.known(resolved)
        return known.refusal if known is not None else ()

    def due(self, resolved: Resolved) -> bool:
        """Tell whether the path of a trial is to be measured before it is used."""
        path = resolved.path
        wanted = self._context.policy.calibrate and path is not None and bool(path.router)
        return wanted and self.known(resolved) is None

    def measure(self, scripts: TrialScripts) -> PathResult:
        """Measure the path of a trial that is set, both ways, and write down what came of it.

        Raises TestbedError.
        """
        resolved = scripts.resolved
        assert resolved.path is not None  # it is due
        started_s = time.time()
        ways = [_OneWay(self._context, scripts, resolved.path, name) for name in ("down", "up")]
        measured = _joined([way.measure() for way in ways if way.asks])
        digest = self._digest(resolved)
        self._known[digest] = measured
        self._write(digest, scripts, measured, started_s)
        return measured

    def _digest(self, resolved: Resolved) -> str:
        """Name a path by all that decides how it behaves, the boots of its hosts among it."""
        assert resolved.path is not None
        told = {
            "path": resolved.path.as_json(),
            "mtu_bytes": resolved.mtu_bytes,
            "mtus": {host: plan.mtu_bytes for host, plan in resolved.hosts.items()},
            "ends": [asdict(ends) if ends else None for ends in _all_ends(self._context, resolved)],
            "boots": {host: self._kept.boot(host) for host in resolved.hosts},
        }
        return self._kept.digest(told)

    def _write(self, digest: str, scripts: TrialScripts, measured: PathResult, started_s: float) -> None:
        path = scripts.resolved.path
        checks = [check.as_json() for check in measured.checks]
        told = {
            "t_start_s": round(started_s, 6),
            "trial": scripts.trial.id,
            "mtu_bytes": scripts.resolved.mtu_bytes,
            "path": path.as_json() if path else None,
            "checks": checks,
            "left_out": list(measured.left_out),
            "seen": measured.seen,
        }
        values: dict[str, object] = {
            "trial": scripts.trial.id,
            **self._kept.write(digest, told),
            "seconds": round(time.time() - started_s, 3),
            "missed": [str(check) for check in measured.checks if not check.ok],
            "refused": list(measured.refusal),
            "left_out": list(measured.left_out),
        }
        self._context.note("path-measured", **values)
        self._context.emit(Event("path-measured", values))

    def _load(self, digest: str) -> None:
        """Take what an earlier controller measured; what made trials impossible is measured again."""
        told = self._kept.read(digest)
        if told is None:
            return
        measured = PathResult(tuple(Check(**check) for check in told["checks"]), tuple(told["left_out"]))
        if not measured.refusal:
            self._known[digest] = measured


def _joined(found: Sequence[PathResult]) -> PathResult:
    checks = tuple(check for one in found for check in one.checks)
    seen = {name: value for one in found for name, value in one.seen.items()}
    return PathResult(checks, tuple(why for one in found for why in one.left_out), seen)


def _all_ends(context: CampaignContext, resolved: Resolved) -> Iterator[Endpoints | None]:
    return (endpoints_of(resolved, context.policy.behind.get(name, frozenset())) for name in ("down", "up"))


def endpoints_of(resolved: Resolved, behind: frozenset[str]) -> Endpoints | None:
    """Find two ends of a flow, one of them behind a way and one before it; None when there are none."""
    for flow in resolved.flows:
        sender, receiver = flow.from_address in behind, flow.to_address in behind
        if receiver and not sender:
            return Endpoints(flow.from_host, flow.to_host, flow.to_address)
        if sender and not receiver:
            return Endpoints(flow.to_host, flow.from_host, flow.from_address)
    return None


class _OneWay:
    """One way through the bottleneck, to be measured."""

    def __init__(self, context: CampaignContext, scripts: TrialScripts, path: PathPlan, name: str) -> None:
        self._context, self._scripts, self._path, self._name = context, scripts, path, name
        self._way: DirectionPlan = path.down if name == "down" else path.up
        self._ends = endpoints_of(scripts.resolved, context.policy.behind.get(name, frozenset()))

    @property
    def asks(self) -> bool:
        """Whether anything is asked of the way; the round trip is measured once, with the way down."""
        return self._name == "down" or self._way.rate_bps is not None or bool(self._way.loss)

    def measure(self) -> PathResult:
        """Measure until all is as asked, a few times at most; the best time counts."""
        if (lacking := self._lacking()) or self._ends is None:
            return PathResult((), (f"{self._name}: {lacking}",))
        probe = self._probe()
        best: tuple[int, PathResult] | None = None
        for _ in range(ATTEMPTS):
            measured = self._once(self._ends, probe)
            misses = sum(not check.ok for check in measured.checks)
            if best is None or misses < best[0]:
                best = misses, measured
            if not misses:
                break
        assert best is not None
        return best[1]

    def _lacking(self) -> str:
        if self._ends is None:
            return "no flow of the trial goes through the bottleneck"
        catalogue, hosts = self._context.catalogue, self._scripts.resolved.hosts
        for host in (self._ends.sender, self._ends.receiver):
            if "calibrate" not in catalogue.names("step", hosts[host].system):
                return f"no recipe measures from {host}, {hosts[host].system}"
        return ""

    def _probe(self) -> PathProbe:
        """Leave out round trip and losses where classes of flows have their own."""
        plain = not self._path.classes
        probe = plan_probe(
            self._path,
            self._way,
            self._scripts.resolved.mtu_bytes,
            pings=30 if plain and self._name == "down" else 0,
            paced_packets=1,
        )
        wanted = PACED_PACKETS if self._way.loss else LOSSLESS_PACKETS
        paced = min(wanted, int(MOST_PACED_S / probe.paced_gap_s)) if plain else 0
        return probe.with_paced(paced)

    def _once(self, ends: Endpoints, probe: PathProbe) -> PathResult:
        hosts = self._scripts.resolved.hosts
        systems = (hosts[ends.sender].system, hosts[ends.receiver].system)
        texts = render_calibration(probe, self._context.catalogue, systems, ends.address, PORT, RECEIVER)
        sent, received, queue = self._run(ends, texts, probe)
        seen = parse_calibration(sent, received, queue, self._way.interface)
        checks = check_calibration(
            self._path, self._way, probe, seen, burst_bytes=self._burst_bytes, fills=self._fills
        )
        return PathResult(tuple(checks), (), {self._name: _told(seen, self._burst_bytes)})

    def _run(self, ends: Endpoints, texts: CalibrationScripts, probe: PathProbe) -> tuple[str, str, str]:
        router = self._path.router
        self._on_both((router, self._sampling("start", "ready")), (ends.receiver, texts.receive))
        sent = self._on_both((ends.sender, texts.send), deadline_s=self._limit_s(probe))
        ended = f"halt {SAMPLER}\nawait_end {SAMPLER}\ncat {SAMPLER}.csv\nrm -f {SAMPLER}.*\n"
        told = self._on_both((router, ended), (ends.receiver, texts.collect + f"rm -f {FILES}\n"))
        return sent[ends.sender], told[ends.receiver], told[router]

    def _sampling(self, *blocks: str) -> str:
        system = self._scripts.resolved.hosts[self._path.router].system
        recipe = self._context.catalogue.recipe("logger", "queue", system)
        values: Mapping[str, object] = {
            "name": SAMPLER,
            "output": f"{SAMPLER}.csv",
            "limit_s": self._limit_s(self._probe()),
            "interface": self._way.interface,
            "interval_s": sampling_s(recipe),
        }
        return "".join(recipe.render(block, values) for block in blocks)

    def _limit_s(self, probe: PathProbe) -> float:
        return self._context.policy.step_timeout_s + 2 * probe.duration_s

    def _on_both(self, *bodies: tuple[str, str], deadline_s: float | None = None) -> dict[str, str]:
        limit_s = deadline_s or self._context.policy.step_timeout_s
        texts = {host: self._scripts.script(host, (body,)) for host, body in bodies}
        done = self._context.sessions.map(
            lambda s: s.run(texts[s.host], step=f"calibrate {self._name}", deadline_s=limit_s), texts
        )
        return {host: one.text for host, one in done.items()}

    @property
    def _burst_bytes(self) -> int:
        host = self._scripts.resolved.hosts[self._path.router]
        values = bottleneck_values(
            self._path, host, self._scripts.resolved.mtu_bytes, self._context.catalogue
        )
        ways = values["directions"]
        assert isinstance(ways, tuple)
        found: Iterator[PathDirection] = (way for way in ways if way.name == self._name)
        return next(found).burst_bytes

    @property
    def _fills(self) -> bool:
        """Whether an overload fills the queue, or its discipline drops before."""
        if self._way.aqm is None:
            return True
        system = self._scripts.resolved.hosts[self._path.router].system
        return "drops_early" not in self._context.catalogue.recipe("aqm", self._way.aqm, system).blocks


def _told(seen: DirectionMeasurement, burst_bytes: int) -> Mapping[str, object]:
    """Give the measures themselves, for whoever wants more than a verdict."""
    return {
        "base_rtt_s": seen.base_rtt_s,
        "rate_bps": seen.rate_bps(burst_bytes),
        "held_packets": seen.sampled_packets,
        "held_bytes": seen.sampled_bytes,
        "under_way_packets": seen.under_way_packets,
        "sent_paced": seen.sent_paced,
        "lost": sum(seen.lost),
        "mean_loss_burst_packets": None if seen.counted else mean_burst(seen.lost),
        "duplicates": seen.duplicates,
        "overtaken": seen.overtaken,
    }
