"""Check the traffic of a part, its captures and loggers, and the path that the traffic takes.

Checks that compare several values of a treatment are made when the experiment is planned.
"""

from __future__ import annotations

from collections.abc import Sequence

from samovar.errors import unknown
from samovar.experiment import keys
from samovar.experiment.checks.part_values import PartToCheck
from samovar.experiment.values import Directional


def check_traffic(part: PartToCheck) -> None:
    """Report errors in the flows, captures and loggers of a part."""
    for index, flow in enumerate(part.model.traffic):
        varies = f"traffic.{flow.label}.count" in part.setters
        ends = (flow.from_end, flow.to_end)
        plural = part.testbed is not None and any(keys.is_plural(part.testbed, end) for end in ends)
        if flow.every_s and flow.count is None and not plural and not varies:
            message = f"flow '{flow.label}' is a single flow; add `count`, or remove `every`"
            part.checked.report(("traffic", index, "every"), message, key=True)
    _check_interfaces(part, "captures", part.model.captures)
    _check_interfaces(part, "loggers", part.model.loggers)


def _check_interfaces(part: PartToCheck, key: str, recorders: Sequence[keys.Capture | keys.Logger]) -> None:
    """Report captures and loggers at unknown interfaces, or at hosts without interfaces."""
    if part.testbed is None:
        return
    bottleneck = part.testbed.bottleneck
    for index, one in enumerate(recorders):
        for host in keys.places_of(part.testbed, one.at):
            interfaces = part.testbed.hosts[host].interfaces
            queues = ("down", "up") if bottleneck and bottleneck.router == host else ()
            if not interfaces:
                message = f"host {host} has no testbed interface; there is no traffic to record"
                part.checked.report((key, index, "at"), message)
            elif one.interface is not None and one.interface not in (*interfaces, *queues):
                message = unknown(f"interface of {host}", one.interface, interfaces)
                part.checked.report((key, index, "interface"), message)


# The path


def check_path(part: PartToCheck) -> None:
    """Report errors in the path of a part."""
    testbed, path = part.testbed, part.model.path or keys.NetworkPath()
    if part.model.path is None and not any(target.startswith("path.") for target in part.setters):
        return
    if part.device_link:
        _check_router_only(part, part.device_link)
        return
    if testbed is not None and testbed.bottleneck is None:
        message = f"testbed '{testbed.name}' has no bottleneck; remove path, or choose another testbed"
        part.checked.report(("path",), message, key=True)
    for key, value in (("rate", path.rate_bps), ("buffer", path.buffer)):
        if not value and part.checked.intact() and f"path.{key}" not in part.setters:
            message = f"path has no {key}; add {key}: ... here, or a factor path.{key}"
            part.checked.report(("path",), message, key=True)
    if not isinstance(path.rate_bps, Directional) and path.rate_bps and "path.rate" not in part.setters:
        for key, queue in (("buffer", path.buffer), ("aqm", path.aqm)):
            if isinstance(queue, Directional) and queue.up is not None:
                message = f"path has no rate upstream for this {key}; add rate: {{down: ..., up: ...}}"
                part.checked.report(("path", key), message)
    if path.loss_burst_packets and not path.loss and "path.loss" not in part.setters:
        part.checked.report(("path", "loss_burst"), "path has loss_burst but no loss; add loss")
    selectors = [(one.flow, one.from_end, one.to_end) for one in path.classes]
    for index, selector in enumerate(selectors):
        if selectors.index(selector) != index:
            message = "another class selects the same packets already; merge the two"
            part.checked.report(("path", "classes", index), message)


def _check_router_only(part: PartToCheck, link: str) -> None:
    """Report keys of the path that need a router. (The bottleneck is the device of the link `link`.)"""
    known = keys.keys_of(keys.NetworkPath)
    takes = [*(key for key in known if key not in keys.ROUTER_ONLY), *keys.DEVICE_PARAMETERS]
    refused = f"needs a router; the bottleneck is link '{link}', which takes {', '.join(takes)}"
    for key in keys.ROUTER_ONLY:
        if part.model.path and known[key].attribute in part.model.path.model_fields_set:
            part.checked.report(("path", key), f"path.{key} {refused}", key=True)
        for factor in part.setters_of(f"path.{key}"):
            part.checked.report(("factors", factor.name), f"path.{key} {refused}", key=True)
