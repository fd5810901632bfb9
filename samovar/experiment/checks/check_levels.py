"""What makes a level impossible: its form, its values, unknown hosts, parameters no recipe takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from samovar.experiment.checks.check_context import Context, Known
from samovar.experiment.checks.check_flows import flows_by_label
from samovar.experiment.checks.setting_values import refused_setting
from samovar.experiment.checks.validate import Loc
from samovar.experiment.expressions import DISTRIBUTIONS, Directional, DistributionText, LevelText, PerHost
from samovar.experiment.keys import (
    NOT_OF_HOSTS,
    ONE_PER_DIRECTION,
    SETTINGS,
    UNDIRECTED,
    Level,
    Part,
    end_names,
    hosts_of,
    known_factors,
    may_be_random,
    parser_of,
    read_target,
    refusal,
)
from samovar.experiment.nearest import unknown
from samovar.units import UnitError

WAYS = ("down", "up")


@dataclass(frozen=True)
class Place:
    """One value of a level: what it sets, the level it is of, and where it stands.

    `named` is where the target's name stands when that is the value of a key: `sets` or `parameter`.
    """

    where: Loc
    target: str
    level: Level
    named: Loc = ()

    @property
    def key(self) -> Loc:
        """The place whose key says what is set: the factor's, or that of one value of a linked level."""
        return self.where if self.where[-1] == self.target else self.where[: self.where.index("levels")]

    def blame(self, context: Context, message: str) -> None:
        """Report what is wrong with the target, where its name stands."""
        if self.named:
            context.checked.report(self.named, message)
        else:
            context.checked.report(self.key, message, key=True)

    def below(self, *steps: str) -> Loc:
        """Return a place within the value."""
        return (*self.where, *steps)


def check_value(context: Context, part: Part, place: Place) -> bool:
    """Report what a target cannot be set to; say whether it can."""
    before = len(context.checked.problems)
    value = place.level.texts[place.target]
    _check_form(context, part, place, value)
    if len(context.checked.problems) == before:
        for steps, text in _texts(value):
            _check_text(context, part, place, steps, text)
    return len(context.checked.problems) == before


def is_setting(target: str) -> bool:
    """Say whether a target is a setting of hosts, by a built-in name or a recipe's parameter."""
    return target in SETTINGS or ("." in target and target.partition(".")[0] not in NOT_OF_HOSTS)


def _texts(value: LevelText) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts of a value with the steps that lead to each."""
    if isinstance(value, str):
        yield (), value
    elif isinstance(value, DistributionText):
        return  # is read as a whole, by the form
    elif isinstance(value, PerHost):
        yield from (((host,), text) for host, text in value.hosts.items())
    else:
        pairs = (("down", value.down), ("up", value.up))
        yield from (((way,), text) for way, text in pairs if text is not None)


def _check_form(context: Context, part: Part, place: Place, value: LevelText) -> None:
    """Report directions of what has none, hosts of what is no setting of hosts, laws of what is not drawn."""
    if isinstance(value, DistributionText) or may_be_random(place.target):
        _check_random(context, part, place, value)
    elif place.target.startswith("path."):
        _check_directions(context, place, value)
    elif is_setting(place.target) and isinstance(value, Directional):
        message = f"{place.target}: hosts have no directions; expected one value, or one per host"
        context.checked.report(place.where, message)
    elif is_setting(place.target):
        for one in value.hosts if isinstance(value, PerHost) else ():
            _check_host(context, place.below(one), one)
    elif not isinstance(value, str):
        context.checked.report(place.where, f"{place.target}: expected one value, not a mapping")


def _check_random(context: Context, part: Part, place: Place, value: LevelText) -> None:
    """Report distributions for keys that cannot be random, and mappings that are not a distribution."""
    if not may_be_random(place.target):
        message = "cannot be random; only the size, start and duration of a flow can"
        context.checked.report(place.where, f"{place.target}: {message}")
    elif isinstance(value, PerHost):
        for key in value.hosts:
            context.checked.report(place.below(key), unknown("distribution", key, DISTRIBUTIONS), key=True)
    elif isinstance(value, Directional):
        context.checked.report(place.where, f"{place.target}: expected one value, or a distribution")
    elif isinstance(value, DistributionText):
        try:
            read_target(place.target, value)
        except UnitError as error:
            context.checked.report(place.where, f"{place.target}: {error}")


def _check_directions(context: Context, place: Place, value: LevelText) -> None:
    key = place.target.removeprefix("path.")
    if isinstance(value, PerHost):
        for one in [one for one in value.hosts if one not in WAYS]:
            context.checked.report(place.below(one), unknown("direction", one, WAYS), key=True)
    elif key in ONE_PER_DIRECTION and not (isinstance(value, Directional) and value.down and value.up):
        message = f"{place.target}: expected {{down: ..., up: ...}}, one value for each direction"
        context.checked.report(place.where, message)
    elif key in UNDIRECTED and not isinstance(value, str):
        message = f"{place.target}: expected one value; path.delay has one for each direction"
        context.checked.report(place.where, message)


def _check_host(context: Context, where: Loc, name: str) -> None:
    testbed = context.testbed
    if testbed is not None and not hosts_of(testbed, name):
        context.checked.report(where, unknown("host or role", name, end_names(testbed)), key=True)


def _check_text(context: Context, part: Part, place: Place, steps: tuple[str, ...], text: str) -> None:
    parse = parser_of(place.target)
    try:
        if parse is not None:
            parse(text)
    except UnitError as error:
        context.checked.report(place.below(*steps), f"{place.target}: {error}")
        return
    if place.target.startswith("traffic.") or place.target == "stop.when":
        _check_named(context, part, place, text)
    if is_setting(place.target):
        _check_setting(context, part, place, steps, text)
    elif place.target not in known_factors(part):
        _check_parameter(context, part, place, steps, text)


def _check_named(context: Context, part: Part, place: Place, text: str) -> None:
    """Report a level of a flow that names a host, a flow or a generator that is not there."""
    owner, _, key = place.target.rpartition(".")
    known: Iterable[str] | None = None
    if key in ("from", "to") and context.testbed is not None:
        what, known = "host or role", end_names(context.testbed)
    elif place.target == "stop.when" or (key == "until" and not owner.endswith(".arrivals")):
        what, known = "flow", flows_by_label(context, part)
    elif key == "generator":
        ends = (flow.from_end for flow in part.traffic if owner == f"traffic.{flow.label}")
        system = context.system_of(next(ends, ""))
        what, known = f"generator on {system}", context.catalogue.names(key, system) if system else None
    if known is not None and text not in known:
        context.checked.report(place.where, unknown(what, text, known))


def _check_setting(context: Context, part: Part, place: Place, steps: tuple[str, ...], text: str) -> None:
    for system in _systems(context, part, place.target, steps):
        refused = refused_setting(context.catalogue, place.target, text, system)
        if refused:
            if refused.of_key:
                place.blame(context, refused.message)
            else:
                context.checked.report(place.below(*steps), refused.message)
            return


def _systems(context: Context, part: Part, target: str, steps: tuple[str, ...]) -> list[str]:
    """Return the systems of the hosts that a setting is for."""
    testbed = context.testbed
    if testbed is None:
        return []
    hosts = {host for name in steps for host in hosts_of(testbed, name)}
    if not steps:
        ends = [end for flow in part.traffic for end in _ends(flow.from_end, flow.to_end, target)]
        hosts = {host for end in ends for host in hosts_of(testbed, end)}
    if not steps and target == "mtu":
        hosts = {name for name, host in testbed.hosts.items() if host.interfaces}
    return sorted({testbed.hosts[host].system for host in hosts})


def _ends(source: str, sink: str, target: str) -> tuple[str, ...]:
    if target in ("cc", "txd") or target.startswith("cc."):
        return (source,)
    return (sink,) if target == "rwnd" else (source, sink)


def _check_parameter(context: Context, part: Part, place: Place, steps: tuple[str, ...], text: str) -> None:
    """Report parameters of recipes that no recipe takes or whose values it refuses."""
    owner, _, parameter = place.target.rpartition(".")
    takers = dict(context.takers(part, owner, place.level))
    lacking = not_taken(owner, parameter, takers)
    if lacking:
        place.blame(context, lacking)
        return
    for known in takers.values():
        own = [key.removeprefix(f"{owner}.") for key in known_factors(part) if key.startswith(f"{owner}.")]
        if parameter not in known:
            message = unknown(f"key or parameter of {owner}", parameter, [*known, *own])
            place.blame(context, message)
            return
        refused = refusal(parameter, text, known, ())
        if refused:
            context.checked.report(place.below(*steps), refused)
            return


def not_taken(owner: str, parameter: str, takers: Mapping[str, Known]) -> str | None:
    """Say that one of the recipes that get a parameter does not take it although another does, or None."""
    lacking = [name for name, known in takers.items() if parameter not in known]
    having = [name for name, known in takers.items() if parameter in known]
    if not lacking or not having:
        return None
    key = "aqm" if owner == "path" else "generator"
    together = f"{{{owner}.{key}: {having[0]}, {owner}.{parameter}: ...}}"
    return f"{lacking[0]} takes no {parameter}, as {having[0]} does; expected both in one level, {together}"
