"""Check settings of hosts: keys that a recipe sets, values it takes, hosts that exist.

Settings are given in config.yaml, testbeds and experiments, and by levels of factors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.errors import Problem
from samovar.experiment.keys import (
    NOT_OF_HOSTS,
    OPERATING_SYSTEMS,
    SETTINGS,
    Config,
    Testbed,
    read_parameter,
    settable,
)
from samovar.experiment.nearest import unknown
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.yaml.tree import Map, Node, node_at
from samovar.units import UnitError


def is_setting(target: str) -> bool:
    """Return whether a key is a setting of hosts: cc, rwnd, mtu, txd, cc.PARAMETER or RECIPE.PARAMETER."""
    return target in SETTINGS or ("." in target and target.partition(".")[0] not in NOT_OF_HOSTS)


def setting_parameters(catalogue: RecipeCatalogue, *systems: str) -> dict[str, ParameterInfo]:
    """Return RECIPE.PARAMETER of all setting recipes of some systems that a file may give a value."""
    return {
        f"{recipe}.{name}": info
        for system in systems
        for recipe in sorted(catalogue.names("setting", system))
        for name, info in settable(catalogue, "setting", recipe, system).items()
    }


def check_site(testbed: Testbed, config: Config | None, catalogue: RecipeCatalogue) -> Iterator[Problem]:
    """Yield the problems of the settings of config.yaml, of a testbed and of its hosts."""
    site = config.written if config is not None else None
    by_os = {os: [name for name, host in testbed.hosts.items() if host.os == os] for os in OPERATING_SYSTEMS}
    for hosts, node in [
        (list(testbed.hosts), node_at(site, "settings")),
        *((hosts, node_at(site, "os", os, "settings")) for os, hosts in by_os.items()),
    ]:
        yield from _problems(node, hosts, testbed, catalogue, other_hosts=True)
    yield from check_part_settings(node_at(testbed.written, "settings"), testbed, catalogue)
    for host in testbed.hosts:
        own = node_at(testbed.written, "hosts", host, "settings")
        yield from _problems(own, [host], testbed, catalogue)


def check_part_settings(
    settings: Node | None, testbed: Testbed, catalogue: RecipeCatalogue
) -> Iterator[Problem]:
    """Yield the problems of settings for the hosts of a testbed, such as those of a part."""
    yield from _problems(settings, list(testbed.hosts), testbed, catalogue)


def _problems(
    settings: Node | None,
    hosts: Sequence[str],
    testbed: Testbed,
    catalogue: RecipeCatalogue,
    other_hosts: bool = False,
) -> Iterator[Problem]:
    """Yield the problems of one layer; `other_hosts` allows hosts that this testbed does not have."""
    if not isinstance(settings, Map):
        return
    systems = sorted({testbed.hosts[host].system for host in hosts})
    names = {name for host in hosts for name in testbed.names_of(host)}
    for key, value in settings.items():
        by_host = value if isinstance(value, Map) else None
        for name in by_host or ():
            if by_host is not None and not other_hosts and name not in names:
                yield by_host.key_positions[name].problem(unknown("host or role", name, names))
        message = setting_key_error(key, systems, catalogue)
        if message:
            yield settings.key_positions[key].problem(message)
            continue
        for one in (value,) if by_host is None else by_host.values():
            error = setting_value_error(key, one, systems, catalogue) if isinstance(one, str) else None
            if error:
                yield one.position.problem(f"{key}: {error}")


def setting_key_error(key: str, systems: Sequence[str], catalogue: RecipeCatalogue) -> str | None:
    """Return the message for a key that no setting recipe of some systems has; None if one has it."""
    builtin = {name for name in SETTINGS for one in systems if name in catalogue.names("setting", one)}
    if not systems or key in builtin or (key.startswith("cc.") and key != "cc."):
        return None
    if any(_parameter(key, system, catalogue) for system in systems):
        return None
    known = {*builtin, *setting_parameters(catalogue, *systems), "cc.<parameter>"}
    return unknown(f"setting on {', '.join(systems)}", key, known)


def _parameter(key: str, system: str, catalogue: RecipeCatalogue) -> ParameterInfo | None:
    recipe, _, parameter = key.partition(".")
    return settable(catalogue, "setting", recipe, system).get(parameter)


def setting_value_error(
    key: str, value: str, systems: Sequence[str], catalogue: RecipeCatalogue
) -> str | None:
    """Return why a setting cannot have a value on some systems; None if it can."""
    try:
        if key in SETTINGS:
            SETTINGS[key](str(value))
        for system in systems:
            info = _parameter(key, system, catalogue)
            if info is not None:
                read_parameter(info, str(value))
    except UnitError as error:
        return str(error)
    return None if value.strip() else "is empty; give a value"
