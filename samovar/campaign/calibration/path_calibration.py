"""Measure each distinct path of a campaign once, before its first trial."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from samovar.campaign.calibration.cache import ATTEMPTS, CalibrationCache
from samovar.campaign.context import CampaignContext
from samovar.campaign.verdict import Check, check_direction, parse_measurement
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
RECEIVER_FILES = f"{RECEIVER}.* {RECEIVER}-burst.* {RECEIVER}-paced.*"
MOST_PACED_S = 5.0
PACED_PACKETS, PACED_PACKETS_WITHOUT_LOSS = 2000, 500
DIRECTIONS = ("down", "up")


@dataclass(frozen=True)
class Endpoints:
    """A sender before the bottleneck, and a receiver behind it with its address."""

    sender: str
    receiver: str
    address: str


@dataclass(frozen=True)
class PathResult:
    """The checks of a measured path, what was left out and why, and the values measured by direction."""

    checks: tuple[Check, ...]
    left_out: tuple[str, ...] = ()
    measured: Mapping[str, object] = field(default_factory=dict)

    @property
    def refusal(self) -> tuple[str, ...]:
        """Why no trial can run on this path; empty if one can."""
        invalid = (check for check in self.checks if check.verdict == "invalid")
        return tuple(f"the path differs too much from the request: {check.reason}" for check in invalid)


def endpoints_of(resolved: Resolved, behind: frozenset[str]) -> Endpoints | None:
    """Return the ends of a flow that passes the bottleneck; `behind` has the addresses on the far side."""
    for flow in resolved.flows:
        sender, receiver = flow.from_address in behind, flow.to_address in behind
        if receiver and not sender:
            return Endpoints(flow.from_host, flow.to_host, flow.to_address)
        if sender and not receiver:
            return Endpoints(flow.to_host, flow.from_host, flow.from_address)
    return None


class PathCalibration:
    """The calibrated paths of one testbed. A result holds until one of the hosts is rebooted."""

    def __init__(self, context: CampaignContext) -> None:
        self._context, self._cache = context, CalibrationCache(context)
        self._results: dict[str, PathResult] = {}

    def is_due(self, resolved: Resolved) -> bool:
        """Return whether the path of a trial must be measured before the trial."""
        return self._is_calibrated(resolved) and self.result(resolved) is None

    def result(self, resolved: Resolved) -> PathResult | None:
        """Return the result for the path of a trial, None without one.

        A path that an earlier controller refused is measured again.
        """
        if not self._is_calibrated(resolved):
            return None
        key = self._key(resolved)
        if key not in self._results and (stored := self._cache.read(key)) is not None:
            checks = tuple(Check.from_json(check) for check in stored["checks"])
            result = PathResult(checks, tuple(stored["left_out"]))
            if not result.refusal:
                self._results[key] = result
        return self._results.get(key)

    def refusal(self, resolved: Resolved) -> tuple[str, ...]:
        """Return why a trial cannot run on its path; empty if it can, or the path is not yet measured."""
        result = self.result(resolved)
        return result.refusal if result is not None else ()

    def measure(self, scripts: TrialScripts) -> None:
        """Measure both directions of a trial's path, which is set, and store the result.

        The round-trip time is measured with `down`; `up` is skipped if it has neither rate nor loss. Raises
        TestbedError.
        """
        resolved, path = scripts.resolved, scripts.resolved.path
        assert path is not None  # it is due
        started_s = time.time()
        parts = [_measure_direction(self._context, scripts, path, "down")]
        if path.up.rate_bps is not None or path.up.loss:
            parts.append(_measure_direction(self._context, scripts, path, "up"))
        result = PathResult(
            tuple(check for part in parts for check in part.checks),
            tuple(reason for part in parts for reason in part.left_out),
            {name: values for part in parts for name, values in part.measured.items()},
        )
        key = self._key(resolved)
        self._results[key] = result
        stored = {
            "t_start_s": round(started_s, 6),
            "trial": scripts.trial.id,
            "mtu_bytes": resolved.mtu_bytes,
            "path": path.as_json(),
            "checks": [check.as_json() for check in result.checks],
            "left_out": list(result.left_out),
            "seen": result.measured,
        }
        values: dict[str, object] = {
            "trial": scripts.trial.id,
            **self._cache.write(key, stored),
            "seconds": round(time.time() - started_s, 3),
            "missed": [check.reason for check in result.checks if not check.ok],
            "refused": list(result.refusal),
            "left_out": list(result.left_out),
        }
        self._context.note("path-measured", **values)
        self._context.emit(Event("path-measured", values))

    def _is_calibrated(self, resolved: Resolved) -> bool:
        return self._context.policy.calibrate and resolved.path is not None and bool(resolved.path.router)

    def _key(self, resolved: Resolved) -> str:
        assert resolved.path is not None
        sides = self._context.policy.behind
        ends = [endpoints_of(resolved, sides.get(name, frozenset())) for name in DIRECTIONS]
        inputs = {
            "path": resolved.path.as_json(),
            "mtu_bytes": resolved.mtu_bytes,
            "mtus": {host: plan.mtu_bytes for host, plan in resolved.hosts.items()},
            "ends": [asdict(one) if one else None for one in ends],
            "boots": {host: self._cache.boot_id(host) for host in resolved.hosts},
        }
        return self._cache.key(inputs)


def _measure_direction(
    context: CampaignContext, scripts: TrialScripts, path: PathPlan, name: str
) -> PathResult:
    """Measure one direction until all checks pass, a few times at most, and return the best result."""
    ends = endpoints_of(scripts.resolved, context.policy.behind.get(name, frozenset()))
    if ends is None:
        return PathResult((), (f"{name}: no flow of the trial passes the bottleneck",))
    for host in (ends.sender, ends.receiver):
        system = scripts.resolved.hosts[host].system
        if "calibrate" not in context.catalogue.names("step", system):
            return PathResult((), (f"{name}: no recipe measures from {host}, {system}",))
    direction = _Direction(context, scripts, path, name, ends)
    best = direction.measure()
    for _ in range(ATTEMPTS - 1):
        if all(check.ok for check in best.checks):
            break
        best = min(best, direction.measure(), key=lambda one: sum(not check.ok for check in one.checks))
    return best


class _Direction:
    """One direction of a path, with the probe that measures it."""

    def __init__(
        self, context: CampaignContext, scripts: TrialScripts, path: PathPlan, name: str, ends: Endpoints
    ) -> None:
        self._context, self._scripts, self._path, self._name = context, scripts, path, name
        self._plan: DirectionPlan = path.down if name == "down" else path.up
        self._ends, self._probe = ends, self._planned_probe()
        self._router_system = scripts.resolved.hosts[path.router].system
        hosts = scripts.resolved.hosts
        systems = (hosts[ends.sender].system, hosts[ends.receiver].system)
        self._texts: CalibrationScripts = render_calibration(
            self._probe, context.catalogue, systems, ends.address, PORT, RECEIVER
        )

    def _planned_probe(self) -> PathProbe:
        """Return the probe; round trips and losses are left out if classes of flows have their own."""
        plain = not self._path.classes
        mtu_bytes = self._scripts.resolved.mtu_bytes
        pings = 30 if plain and self._name == "down" else 0
        probe = plan_probe(self._path, self._plan, mtu_bytes, pings=pings)
        wanted = PACED_PACKETS if self._plan.loss else PACED_PACKETS_WITHOUT_LOSS
        return probe.with_paced(min(wanted, int(MOST_PACED_S / probe.paced_gap_s)) if plain else 0)

    def measure(self) -> PathResult:
        """Run the probe once while the router's queue is sampled. Raises TestbedError."""
        router, ends, texts = self._path.router, self._ends, self._texts
        limit_s = self._context.policy.step_timeout_s + 2 * self._probe.duration_s
        self._run((router, self._sampler(limit_s)), (ends.receiver, texts.receive))
        sent = self._run((ends.sender, texts.send), deadline_s=limit_s)[ends.sender]
        end_sampler = f"halt {SAMPLER}\nawait_end {SAMPLER}\ncat {SAMPLER}.csv\nrm -f {SAMPLER}.*\n"
        printed = self._run(
            (router, end_sampler), (ends.receiver, texts.collect + f"rm -f {RECEIVER_FILES}\n")
        )
        measured = parse_measurement(sent, printed[ends.receiver], printed[router], self._plan.interface)
        burst_bytes = self._burst_bytes()
        checks = check_direction(
            self._path, self._plan, self._probe, measured, burst_bytes=burst_bytes, fills=self._fills()
        )
        return PathResult(tuple(checks), (), {self._name: measured.as_json(burst_bytes)})

    def _sampler(self, limit_s: float) -> str:
        recipe = self._context.catalogue.recipe("logger", "queue", self._router_system)
        values: Mapping[str, object] = {
            "name": SAMPLER,
            "output": f"{SAMPLER}.csv",
            "limit_s": limit_s,
            "interface": self._plan.interface,
            "interval_s": sampling_s(recipe),
        }
        return recipe.render("start", values) + recipe.render("ready", values)

    def _run(self, *bodies: tuple[str, str], deadline_s: float | None = None) -> dict[str, str]:
        """Run bodies of scripts on their hosts at once; return what each host printed."""
        limit_s = deadline_s or self._context.policy.step_timeout_s
        texts = {host: self._scripts.script(host, (body,)) for host, body in bodies}
        done = self._context.sessions.map(
            lambda s: s.run(texts[s.host], step=f"calibrate {self._name}", deadline_s=limit_s), texts
        )
        return {host: one.text for host, one in done.items()}

    def _burst_bytes(self) -> int:
        """Return the size of the router's token bucket in bytes."""
        resolved = self._scripts.resolved
        host = resolved.hosts[self._path.router]
        values = bottleneck_values(self._path, host, resolved.mtu_bytes, self._context.catalogue)
        ways: tuple[PathDirection, ...] = values["directions"]  # type: ignore[assignment]
        return next(way.burst_bytes for way in ways if way.name == self._name)

    def _fills(self) -> bool:
        """Return whether an overload fills the queue, rather than its discipline dropping early."""
        aqm = self._plan.aqm
        return (
            aqm is None
            or "drops_early" not in self._context.catalogue.recipe("aqm", aqm, self._router_system).blocks
        )
