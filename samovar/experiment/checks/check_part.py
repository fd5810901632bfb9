"""Check a part as a whole: its factors and treatments, its path, flows, captures and loggers.

Checks that compare several values of a treatment are made when the experiment is planned.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from samovar.errors import unknown
from samovar.experiment import keys
from samovar.experiment.checks.part_values import PartToCheck, part_levels
from samovar.experiment.checks.validate import Validation
from samovar.experiment.values import Directional, Distribution

MOST_TRIALS = 2_000_000


def check_size(checked: Validation[keys.Experiment], experiment: keys.Experiment) -> None:
    """Report the part at which the total number of trials first exceeds MOST_TRIALS."""
    count = 0
    for name, part in experiment.parts.items():
        treatments = prod(len(factor.levels) for factor in part.factors.values())
        count += treatments * part.replicates
        if count > MOST_TRIALS:
            key, size = "factors", f"{treatments:,} treatments"
            if treatments <= MOST_TRIALS:
                key, size = "replicates", f"{size} x {part.replicates:,} replicates"
            message = f"{size} are too many; an experiment may have at most {MOST_TRIALS:,} trials"
            checked.report(("parts", name, key), message)
            return


def check_part(part: PartToCheck) -> None:
    """Report errors in the factors, `exclude`, path, flows, captures and loggers of a part."""
    _check_levels(part)
    _check_conflicts(part)
    _check_exclude(part)
    if part.has_path:
        check_path = _check_device_path if part.device_link else _check_router_path
        check_path(part, part.model.path or keys.NetworkPath())
    _check_flows(part)
    _check_interfaces(part, "captures", part.model.captures)
    _check_interfaces(part, "loggers", part.model.loggers)


# Factors and treatments


def _check_levels(part: PartToCheck) -> None:
    """Report factors with misleading names or without levels, unknown hosts in `at`, and duplicate labels."""
    for factor in part.model.factors.values():
        where = ("factors", factor.name)
        if factor.name in keys.TABLE_COLUMNS:
            message = f"factor '{factor.name}' has the name of a column in tables of results; rename it"
            part.checked.report(where, message, key=True, once=True)  # it may be an unknown factor too
        if not factor.levels and part.checked.intact(*where):
            part.checked.report(where, f"factor '{factor.name}' has no levels; give at least one")
        if factor.sets and factor.name not in factor.sets and keys.is_target(factor.name, part.model):
            message = f"factor '{factor.name}' does not set {factor.name}; add it here, or rename the factor"
            part.checked.report((*where, "sets"), message)
        for index, end in enumerate(factor.at):
            part.checked.check_name((*where, "at", index), "host or role", end, part.end_names)
        labels = factor.labels
        for index, label in enumerate(labels):
            if label in labels[:index]:
                message = f"{factor.name}: another level is named '{label}' already; remove one or label it"
                part.checked.report((*where, "levels", index), message)


def _check_conflicts(part: PartToCheck) -> None:
    """Report factors and levels that contradict each other.

    Two factors must not set the same key, or both determine when a flow ends. A level must not set two keys
    that exclude each other.
    """
    for target, factors in part.setters.items():
        for factor in factors[1:]:
            message = f"factors '{factors[0].name}' and '{factor.name}' both set {target}"
            part.checked.report(("factors", factor.name), f"{message}; remove one of them", key=True)
    for flow in part.model.traffic:
        ending = part.setters_of(*(f"traffic.{flow.label}.{key}" for key in keys.FLOW_ENDS))
        for factor in ending[1:]:
            both = f"factors '{ending[0].name}' and '{factor.name}'"
            message = f"{both} both determine when flow '{flow.label}' ends"
            advice = "remove one, or link their levels in one factor"
            part.checked.report(("factors", factor.name), f"{message}; {advice}", key=True)
    for _, level, place in part_levels(part.model):
        for owner in sorted({target.rpartition(".")[0] for target in level.texts}):
            model = keys.model_of(owner)
            for group in model.EXCLUSIVE if model is not None else ():
                given = [f"{owner}.{key}" for key in group if f"{owner}.{key}" in level.texts]
                if len(given) > 1:
                    message = f"{' and '.join(given)} exclude each other; expected one of them in a level"
                    part.checked.report(place, message)


def _check_exclude(part: PartToCheck) -> None:
    """Report unknown factors and levels in `exclude`."""
    factors = part.model.factors
    for index, line in enumerate(part.model.exclude):
        for name, labels in line.items():
            at = ("exclude", index, name)
            if not part.checked.check_name(at, "factor", name, factors, key=True):
                continue
            if part.checked.valid("factors", name):  # otherwise, a level with this label may be invalid
                for place, label in enumerate(labels):
                    part.checked.check_name((*at, place), f"level of {name}", label, factors[name].labels)


# The path


def _check_router_path(part: PartToCheck, path: keys.NetworkPath) -> None:
    """Report keys of a router's path that are missing or contradict each other."""
    if part.testbed is not None and part.testbed.bottleneck is None:
        message = f"testbed '{part.testbed.name}' has no bottleneck; remove path, or choose another testbed"
        part.checked.report(("path",), message, key=True)
    for key, value in (("rate", path.rate_bps), ("buffer", path.buffer)):
        if not value and part.checked.intact() and f"path.{key}" not in part.setters:
            message = f"path has no {key}; set `{key}` here, or add a factor `path.{key}`"
            part.checked.report(("path",), message, key=True)
    if path.rate_bps and not _has_upstream(path.rate_bps) and "path.rate" not in part.setters:
        for key, queue in (("buffer", path.buffer), ("aqm", path.aqm)):
            message = f"path has no rate upstream for this {key}; add rate: {{down: ..., up: ...}}"
            if _has_upstream(queue):
                part.checked.report(("path", key), message)
            for factor in part.setters_of(f"path.{key}"):
                if any(_has_upstream(level.values.get(f"path.{key}")) for level in factor.levels):
                    part.checked.report(("factors", factor.name), message)
    if path.loss_burst_packets and not path.loss and "path.loss" not in part.setters:
        part.checked.report(("path", "loss_burst"), "path has loss_burst but no loss; add loss")
    selectors = [(one.flow, one.from_end, one.to_end) for one in path.classes]
    for index, selector in enumerate(selectors):
        if selectors.index(selector) != index:
            message = "another class selects the same packets already; merge the two"
            part.checked.report(("path", "classes", index), message)


def _has_upstream(value: object) -> bool:
    return isinstance(value, Directional) and value.up is not None


def _check_device_path(part: PartToCheck, path: keys.NetworkPath) -> None:
    """Report keys of the path that need a router, because the bottleneck is a device."""
    known = keys.keys_of(keys.NetworkPath)
    takes = ", ".join([*(key for key in known if key not in keys.ROUTER_ONLY), *keys.DEVICE_PARAMETERS])
    refused = f"needs a router; the bottleneck is link '{part.device_link}', which takes {takes}"
    for key in keys.ROUTER_ONLY:
        if known[key].attribute in path.model_fields_set:
            part.checked.report(("path", key), f"path.{key} {refused}", key=True)
        for factor in part.setters_of(f"path.{key}"):
            part.checked.report(("factors", factor.name), f"path.{key} {refused}", key=True)


# Flows, captures and loggers


def _check_flows(part: PartToCheck) -> None:
    """Report `every` in entries of `traffic` that are a single flow, and random starts beside `arrivals`."""
    for index, flow in enumerate(part.model.traffic):
        varies = f"traffic.{flow.label}.count" in part.setters
        number = keys.number_of(flow, part.testbed) if part.testbed else flow.count
        if flow.every_s and number is None and not varies:
            message = f"flow '{flow.label}' is a single flow; add `count`, or remove `every`"
            part.checked.report(("traffic", index, "every"), message, key=True)
        for one in part.values.get(f"traffic.{flow.label}.start", ()) if flow.arrivals else ():
            if isinstance(one.value, Distribution):
                message = "`arrivals` and a random `start` exclude each other; expected one of them"
                part.checked.report(one.where, message)


def _check_interfaces(part: PartToCheck, key: str, recorders: Sequence[keys.Capture | keys.Logger]) -> None:
    """Report captures and loggers at unknown interfaces, or at hosts without interfaces."""
    if part.testbed is None:
        return
    bottleneck = part.testbed.bottleneck
    for index, one in enumerate(recorders):
        for host in keys.hosts_of(part.testbed, *one.at):
            interfaces = part.testbed.hosts[host].interfaces
            queues = ("down", "up") if bottleneck and bottleneck.router == host else ()
            if not interfaces:
                message = f"host {host} has no testbed interface, so it has no traffic to record"
                part.checked.report((key, index, "at"), message)
            elif one.interface is not None and one.interface not in (*interfaces, *queues):
                message = unknown(f"interface of {host}", one.interface, interfaces)
                part.checked.report((key, index, "interface"), message)
