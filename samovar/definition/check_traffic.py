"""What makes a part's traffic, captures and loggers impossible on a testbed with these recipes."""

from __future__ import annotations

from collections.abc import Sequence

from samovar.definition.context import Context
from samovar.definition.experiment import Flow, Logger, NetworkPath, Part, WithParameters, own_keys
from samovar.definition.factors import SETTINGS, parser_of
from samovar.definition.nearest import unknown
from samovar.definition.parameters import refusal, settable
from samovar.definition.testbed import Testbed
from samovar.definition.topology import shortest_path
from samovar.definition.validate import Loc


def check_traffic(context: Context, name: str, part: Part) -> None:
    """Report what cannot run: ends, ports, recipes, interfaces."""
    where: Loc = ("parts", name)
    if not part.traffic and context.checked.intact(*where, "traffic"):
        context.checked.report((*where, "traffic"), "traffic is empty; expected at least one flow")
    _check_labels(context, where, part)
    for index, flow in enumerate(part.traffic):
        _check_flow(context, (*where, "traffic", index), part, flow)
    _check_ports(context, where, part)
    _check_twice(context, (*where, "captures"), [(one.at, one.interface or "") for one in part.captures])
    _check_twice(context, (*where, "loggers"), [(one.at, one.logger) for one in part.loggers])
    for index, capture in enumerate(part.captures):
        _check_place(context, (*where, "captures", index), capture.at, capture.interface, "captured")
    for index, logger in enumerate(part.loggers):
        at = (*where, "loggers", index)
        if _check_place(context, at, logger.at, logger.interface, "watched"):
            _check_recipe(context, (*at, "logger"), "logger", logger.logger, logger.at)
            _check_parameters(context, at, logger, ("logger", logger.logger), context.host_os(logger.at))
    _check_path_recipes(context, where, part)
    _check_settings(context, where, part)
    _check_parameter_levels(context, where, part)


def _check_labels(context: Context, where: Loc, part: Part) -> None:
    seen: set[str] = set()
    for index, flow in enumerate(part.traffic):
        if flow.label in seen:
            message = f"flow '{flow.label}' stands here again; expected a label of its own"
            context.checked.report((*where, "traffic", index, "flow"), message)
        seen.add(flow.label)


def _check_flow(context: Context, where: Loc, part: Part, flow: Flow) -> None:
    ends = {"from": flow.from_end, "to": flow.to_end}
    known = [_check_host(context, (*where, key), end) for key, end in ends.items()]
    if all(known):
        _check_connected(context, where, flow)
    for generator in _alternatives(part, f"traffic.{flow.label}.generator", flow.generator):
        for end in dict.fromkeys(ends.values()):
            _check_recipe(context, (*where, "generator"), "generator", generator, end)
    _check_parameters(context, where, flow, ("generator", flow.generator), context.host_os(flow.from_end))
    ends_somehow = flow.size_bytes is not None or flow.duration_s is not None or part.duration_s is not None
    varied = {"duration", f"traffic.{flow.label}.size", f"traffic.{flow.label}.duration"} & set(part.factors)
    if not ends_somehow and not varied and context.checked.intact():
        message = f"flow '{flow.label}' never ends; expected size or duration here, or duration at the top"
        context.checked.report(where, message)


def _check_connected(context: Context, where: Loc, flow: Flow) -> None:
    testbed = context.testbed
    if testbed is None:
        return
    start, end = testbed.host_of(flow.from_end), testbed.host_of(flow.to_end)
    if start is None or end is None:
        return
    if start == end:
        message = f"flow '{flow.label}' goes from {start} to itself; expected two hosts"
        context.checked.report((*where, "to"), message)
    elif shortest_path(testbed, start, end) is None:
        message = f"no links lead from {start} to {end}; expected hosts that links and routers connect"
        context.checked.report((*where, "to"), message)


def _check_ports(context: Context, where: Loc, part: Part) -> None:
    seen: dict[tuple[str, int], str] = {}
    for index, flow in enumerate(part.traffic):
        if flow.port is None:
            continue
        host = (context.testbed.host_of(flow.to_end) if context.testbed else None) or flow.to_end
        first = seen.setdefault((host, flow.port), flow.label)
        if first != flow.label:
            message = f"port {flow.port} at {host} is taken by flow '{first}'; expected another"
            context.checked.report((*where, "traffic", index, "port"), message)


def _check_twice(context: Context, where: Loc, places: Sequence[tuple[str, str]]) -> None:
    """Report what would write the same trace a second time."""
    seen: set[tuple[str, str]] = set()
    for index, (at, what) in enumerate(places):
        host = (context.testbed.host_of(at) if context.testbed else None) or at
        if (host, what) in seen:
            name = f"{what} at {host}" if what else host
            context.checked.report((*where, index), f"{name} stands here again; expected it once")
        seen.add((host, what))


def _check_host(context: Context, where: Loc, name: str) -> bool:
    if context.testbed is None:
        return False
    if context.testbed.host_of(name) is None:
        context.checked.report(where, unknown("host or role", name, context.testbed.names()))
        return False
    return True


def _check_place(context: Context, where: Loc, at: str, interface: str | None, what: str) -> bool:
    testbed = context.testbed
    if testbed is None or not _check_host(context, (*where, "at"), at):
        return False
    host = testbed.host_of(at) or at
    interfaces = testbed.hosts[host].interfaces
    if not interfaces:
        message = f"host {host} has no testbed interface; expected one where traffic can be {what}"
        context.checked.report((*where, "at"), message)
    elif interface is not None and interface not in interfaces:
        context.checked.report((*where, "interface"), unknown(f"interface of {host}", interface, interfaces))
    return True


def _check_recipe(context: Context, where: Loc, kind: str, name: str, at: str) -> None:
    os = context.host_os(at)
    if os is not None and name not in context.catalogue.names(kind, os):
        message = unknown(f"{kind} on {os}", name, context.catalogue.names(kind, os))
        context.checked.report(where, message)


def _check_path_recipes(context: Context, where: Loc, part: Part) -> None:
    os = context.router_os()
    if os is None:
        return
    aqm = part.path.aqm if part.path else "pfifo"
    written = aqm if isinstance(aqm, str) else aqm.down or "pfifo"
    factor = part.factors.get("path.aqm")
    levels = factor.labels if factor else None
    for index, name in enumerate(levels or (written,)):
        if name not in context.catalogue.names("aqm", os):
            at = (*where, "factors", "path.aqm", index) if levels else (*where, "path", "aqm")
            context.checked.report(at, unknown(f"aqm on {os}", name, context.catalogue.names("aqm", os)))
    if part.path is not None:
        _check_parameters(context, (*where, "path"), part.path, ("aqm", written), os)


def _check_parameters(
    context: Context, where: Loc, model: WithParameters, recipe: tuple[str, str], os: str | None
) -> None:
    if os is None or not model.parameters:
        return
    known = settable(context.catalogue, *recipe, os)
    for parameter, value in model.parameters.items():
        message = refusal(parameter, value, known, own_keys(type(model)))
        if message:
            at_key = parameter not in known
            context.checked.report((*where, parameter), message, key=at_key)


def _check_settings(context: Context, where: Loc, part: Part) -> None:
    """Report a factor that no recipe of a host's system sets."""
    if context.testbed is None:
        return
    for factor in SETTINGS.keys() & part.factors.keys():
        hosts = _set_hosts(context.testbed, part, factor)
        for os in sorted({context.testbed.hosts[host].os for host in hosts}):
            if factor not in context.catalogue.names("setting", os):
                message = unknown(f"setting on {os}", factor, context.catalogue.names("setting", os))
                context.checked.report((*where, "factors", factor), message, key=True)


def _set_hosts(testbed: Testbed, part: Part, factor: str) -> set[str]:
    if factor == "mtu":
        return {name for name, host in testbed.hosts.items() if host.interfaces}
    ends = [flow.to_end if factor == "rwnd" else flow.from_end for flow in part.traffic]
    return {host for host in map(testbed.host_of, ends) if host is not None}


def _check_parameter_levels(context: Context, where: Loc, part: Part) -> None:
    """Report parameters of recipes, used as factors, that no recipe takes or whose levels it refuses."""
    by_owner = dict(context.parameters(part))
    for factor, levels in part.factors.items():
        owner, _, parameter = factor.rpartition(".")
        known = by_owner.get(owner)
        if known is None or factor in _plain_factors(part) or parser_of(factor, part) is None:
            continue
        if parameter not in known:
            message = unknown(f"parameter of {owner}", parameter, known)
            context.checked.report((*where, "factors", factor), message, key=True)
            continue
        for index, level in enumerate(levels.labels):
            message_or_none = refusal(parameter, level, known, ())
            if message_or_none:
                context.checked.report((*where, "factors", factor, index), message_or_none)


def _plain_factors(part: Part) -> set[str]:
    keys = {"path": own_keys(NetworkPath)}
    keys |= {f"traffic.{flow.label}": own_keys(Flow) for flow in part.traffic}
    keys |= {f"loggers.{logger.logger}": own_keys(Logger) for logger in part.loggers}
    return {f"{owner}.{key}" for owner, names in keys.items() for key in names}


def _alternatives(part: Part, factor: str, written: str) -> tuple[str, ...]:
    return part.factors[factor].labels if factor in part.factors else (written,)
