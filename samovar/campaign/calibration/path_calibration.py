"""Measure each path before the first trial that uses it, and refuse paths that differ from the request."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from samovar import recipes
from samovar.campaign.calibration.cache import ATTEMPTS, cache_key, read_result, write_result
from samovar.campaign.context import CampaignContext
from samovar.campaign.verdict import Check, check_direction, parse_measurement
from samovar.plan import PathPlan, Resolved

PORT = 5300
SAMPLER, RECEIVER = "calibrate-queue", "calibrate"
NO_ENDPOINTS = "no IPv4 flow of the trial passes the bottleneck, or the setting `shaper` limits its sender"
RECEIVER_FILES = f"{RECEIVER}.* {RECEIVER}-burst.* {RECEIVER}-paced.*"


@dataclass(frozen=True)
class Endpoints:
    """A sender on one side of the bottleneck; a receiver on the other side, and the receiver's address."""

    sender: str
    receiver: str
    address: str


@dataclass(frozen=True)
class PathResult:
    """The calibration result of one path.

    `left_out` has a reason for each measurement that was not made. `measured` has
    the measured values of each direction.
    """

    checks: tuple[Check, ...]
    left_out: tuple[str, ...] = ()
    measured: Mapping[str, object] = field(default_factory=dict)

    @property
    def refusal(self) -> tuple[str, ...]:
        """The reasons why no trial may run on this path; empty if trials may run."""
        invalid = (check for check in self.checks if check.verdict == "invalid")
        return tuple(f"the path differs too much from the request: {check.reason}" for check in invalid)

    @property
    def missed(self) -> list[str]:
        """The reasons of the failed checks."""
        return [check.reason for check in self.checks if not check.ok]


def endpoints_of(resolved: Resolved, behind: frozenset[str]) -> Endpoints | None:
    """Return a sender and a receiver on different sides of the bottleneck, or None if no flow has them.

    Sender and receiver belong to one of the trial's flows. Flows of IPv6 are left out, because calibrations
    send packets of IPv4. The sender must not have the setting `shaper`, which may be slower than the
    bottleneck. `behind` has the addresses on the receiving side of the bottleneck.
    """
    for flow in resolved.flows:
        ends = [(flow.from_host, flow.from_address), (flow.to_host, flow.to_address)]
        for (sender, source), (receiver, address) in (ends, ends[::-1]):
            crosses = address in behind and source not in behind and ":" not in address
            if crosses and "shaper" not in resolved.hosts[sender].settings:
                return Endpoints(sender, receiver, address)
    return None


class PathCalibration:
    """The calibrated paths of one testbed. A result stays valid until one of the hosts reboots."""

    def __init__(self, context: CampaignContext) -> None:
        self._context = context
        self._results: dict[str, PathResult] = {}

    def result(self, resolved: Resolved) -> PathResult | None:
        """Return the result for a trial's path, or None if the path must be measured before the trial.

        The result has no checks if the trial has no path, or if paths are not calibrated. A path that an
        earlier controller refused is measured again.
        """
        path = resolved.path
        if path is None or not path.router or not self._context.policy.calibrate:
            return PathResult(())
        key = self._key(resolved)
        if key not in self._results and (stored := read_result(self._context, key)) is not None:
            checks = tuple(Check.from_json(check) for check in stored["checks"])
            result = PathResult(checks, tuple(stored["left_out"]))
            if not result.refusal:
                self._results[key] = result
        return self._results.get(key)

    def refusal(self, resolved: Resolved) -> tuple[str, ...]:
        """Return why calibration has refused a trial's path; empty if it is accepted or not yet measured."""
        result = self.result(resolved)
        return result.refusal if result is not None else ()

    def measure(self, scripts: recipes.TrialScripts) -> PathResult:
        """Measure both directions of a trial's path, which must already be set up; store the result.

        The round-trip time is measured together with the direction `down`. The direction `up` is not measured
        if it has neither a rate limit nor loss. Raises TestbedError.
        """
        resolved, path = scripts.resolved, scripts.resolved.path
        assert path is not None  # result() is None only for trials with a path
        started_s = time.time()
        parts = [self._measure_direction(scripts, path, "down")]
        if path.up.rate_bps is not None or path.up.loss:
            parts.append(self._measure_direction(scripts, path, "up"))
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
        self._context.report(
            "path-measured",
            trial=scripts.trial.id,
            **write_result(self._context, key, stored),
            seconds=round(time.time() - started_s, 3),
            missed=result.missed,
            refused=list(result.refusal),
            left_out=list(result.left_out),
        )
        return result

    def _endpoints(self, resolved: Resolved, direction: str) -> Endpoints | None:
        return endpoints_of(resolved, self._context.policy.behind.get(direction, frozenset()))

    def _key(self, resolved: Resolved) -> str:
        assert resolved.path is not None
        ends = [self._endpoints(resolved, direction) for direction in ("down", "up")]
        inputs = {
            "path": resolved.path.as_json(),
            "mtu_bytes": resolved.mtu_bytes,
            "mtus": {host: plan.mtu_bytes for host, plan in resolved.hosts.items()},
            "ends": [asdict(one) if one else None for one in ends],
            "boots": {host: self._context.boots.get(host, "") for host in resolved.hosts},
        }
        return cache_key(self._context, inputs)

    def _measure_direction(self, scripts: recipes.TrialScripts, path: PathPlan, name: str) -> PathResult:
        """Measure one direction, up to ATTEMPTS times while a check fails; return the best result.

        Raises TestbedError.
        """
        resolved, catalogue = scripts.resolved, self._context.catalogue
        ends = self._endpoints(resolved, name)
        if ends is None:
            return PathResult((), (f"{name}: {NO_ENDPOINTS}",))
        systems = resolved.hosts[ends.sender].system, resolved.hosts[ends.receiver].system
        for host, system in zip((ends.sender, ends.receiver), systems, strict=True):
            if "calibrate" not in catalogue.names("step", system):
                return PathResult((), (f"{name}: no recipe measures a path from {host} ({system})",))
        plan, router = path.down if name == "down" else path.up, resolved.hosts[path.router]
        probe = recipes.plan_probe(path, plan, resolved.mtu_bytes, pings=30 if name == "down" else 0)
        step_limit_s = self._context.policy.config.step_timeout_s
        probe_limit_s = step_limit_s + 2 * probe.duration_s
        sampler = catalogue.recipe("logger", "queue", router.system)
        values: Mapping[str, object] = {
            "name": SAMPLER,
            "output": f"{SAMPLER}.csv",
            "limit_s": probe_limit_s,
            "interface": plan.interface,
            "interval_s": recipes.sampling_s(sampler),
        }
        start_sampler = sampler.render("start", values) + sampler.render("ready", values)
        end_sampler = f"halt {SAMPLER}\nawait_end {SAMPLER}\ncat {SAMPLER}.csv\nrm -f {SAMPLER}.*\n"
        texts = recipes.render_calibration(probe, catalogue, systems, ends.address, PORT, RECEIVER)

        def run(bodies: Mapping[str, str], limit_s: float = step_limit_s) -> dict[str, str]:
            rendered = {host: scripts.script(host, (body,)) for host, body in bodies.items()}
            done = self._context.sessions.run(rendered, f"calibrate {name}", limit_s)
            return {host: result.text for host, result in done.items()}

        bottleneck = recipes.bottleneck_values(path, router, resolved.mtu_bytes, catalogue)
        directions: tuple[recipes.PathDirection, ...] = bottleneck["directions"]  # type: ignore[assignment]
        burst_bytes = next(one.burst_bytes for one in directions if one.name == name)
        aqm = plan.aqm and catalogue.recipe("aqm", plan.aqm, router.system)
        fills = not aqm or "drops_early" not in aqm.blocks
        results: list[PathResult] = []
        while len(results) < ATTEMPTS and (not results or results[-1].missed):
            run({path.router: start_sampler, ends.receiver: texts.receive})
            sent = run({ends.sender: texts.send}, probe_limit_s)[ends.sender]
            collect = texts.collect + f"rm -f {RECEIVER_FILES}\n"
            printed = run({path.router: end_sampler, ends.receiver: collect})
            received, queue = printed[ends.receiver], printed[path.router]
            measured = parse_measurement(sent, received, queue, plan.interface, burst_bytes)
            checks = check_direction(path, plan, probe, measured, fills=fills)
            results.append(PathResult(tuple(checks), (), {name: measured.as_json()}))
        return min(results, key=lambda result: len(result.missed))
