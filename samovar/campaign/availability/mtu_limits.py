"""Find MTUs in a plan that are larger than the driver of an interface accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from operator import attrgetter

from samovar.campaign.availability.findings import Finding
from samovar.hosts import HostFacts
from samovar.plan import Plan


def mtus_beyond_limits(plan: Plan, facts: Mapping[str, HostFacts]) -> Iterator[Finding]:
    """Yield a finding for each MTU that an interface's driver refuses, with the trials that set the MTU."""
    for host, known in facts.items():
        limits = {one.name: one.max_mtu_bytes for one in known.interfaces if one.max_mtu_bytes is not None}
        for group in plan.groups({f"hosts.{host}": attrgetter("mtu_bytes", "interfaces")}):
            own = group.resolved.hosts.get(host)
            for name in own.interfaces if own is not None else ():
                if own is not None and (own.mtu_bytes or 0) > limits.get(name, own.mtu_bytes or 0):
                    what = f"mtu {own.mtu_bytes} is more than {name} accepts"
                    yield Finding(host, what, f"use {limits[name]} or less", True, tuple(group.trials))
