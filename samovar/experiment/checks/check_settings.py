"""What makes a setting impossible: a key that no recipe sets, its value, a host that is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from samovar.errors import Problem
from samovar.experiment.keys import OSES, SETTINGS, Config, Testbed, read_parameter, settable
from samovar.experiment.nearest import unknown
from samovar.experiment.recipe_interface import ParameterInfo, RecipeCatalogue
from samovar.experiment.yaml.tree import Map, Node
from samovar.units import UnitError


def check_site(testbed: Testbed, config: Config | None, catalogue: RecipeCatalogue) -> list[Problem]:
    """Report what cannot be among the settings of config.yaml, of a testbed and of its hosts."""
    site = config.written if config is not None else None
    every = list(testbed.hosts)
    found = [*_problems(_at(site, "settings"), every, testbed, catalogue, anywhere=True)]
    for os in OSES:
        hosts = [name for name, host in testbed.hosts.items() if host.os == os]
        found += _problems(_at(site, "os", os, "settings"), hosts, testbed, catalogue, anywhere=True)
    found += _problems(_at(testbed.written, "settings"), every, testbed, catalogue)
    for host in every:
        own = _at(testbed.written, "hosts", host, "settings")
        found += _problems(own, [host], testbed, catalogue)
    return found


def check_settings(settings: Node | None, testbed: Testbed, catalogue: RecipeCatalogue) -> list[Problem]:
    """Report what cannot be among the settings of one part of an experiment."""
    return list(_problems(settings, list(testbed.hosts), testbed, catalogue))


def setting_parameters(catalogue: RecipeCatalogue, system: str) -> dict[str, ParameterInfo]:
    """Return RECIPE.PARAMETER of each setting recipe that a file may give a value, with what it takes."""
    return {
        f"{recipe}.{name}": info
        for recipe in sorted(catalogue.names("setting", system))
        for name, info in settable(catalogue, "setting", recipe, system).items()
    }


def _problems(
    settings: Node | None,
    hosts: Sequence[str],
    testbed: Testbed,
    catalogue: RecipeCatalogue,
    anywhere: bool = False,
) -> Iterator[Problem]:
    """Yield the mistakes of one layer; `anywhere` lets hosts be named that this testbed does not have."""
    if not isinstance(settings, Map):
        return
    for key, value in settings.items():
        named = value if isinstance(value, Map) else None
        if named is not None and not anywhere:
            known = {name for host in hosts for name in testbed.names_of(host)}
            for name in [name for name in named if name not in known]:
                yield named.key_positions[name].problem(unknown("host or role", name, known))
        systems = sorted({testbed.hosts[host].system for host in hosts})
        message = _refused_key(key, systems, catalogue)
        if message:
            yield settings.key_positions[key].problem(message)
            continue
        for one in named.values() if named is not None else [value]:
            wrong = _refused_value(key, one, systems, catalogue) if isinstance(one, str) else None
            if wrong:
                yield one.position.problem(f"{key}: {wrong}")


def _refused_key(key: str, systems: Sequence[str], catalogue: RecipeCatalogue) -> str | None:
    """Say that no recipe of any of the systems sets a key, or return None."""
    if not systems or (key.startswith("cc.") and len(key) > len("cc.")):
        return None
    known: set[str] = set()
    for system in systems:
        known |= {name for name in SETTINGS if name in catalogue.names("setting", system)}
        known |= setting_parameters(catalogue, system).keys()
    where = f"setting on {', '.join(systems)}"
    return None if key in known else unknown(where, key, {*known, "cc.<parameter>"})


def _refused_value(key: str, value: str, systems: Sequence[str], catalogue: RecipeCatalogue) -> str | None:
    try:
        if key in SETTINGS:
            SETTINGS[key](str(value))
        for system in systems:
            info = setting_parameters(catalogue, system).get(key)
            if info is not None:
                read_parameter(info, str(value))
    except UnitError as error:
        return str(error)
    return "is empty; expected a value" if not value.strip() else None


def _at(tree: Node | None, *keys: str) -> Node | None:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Map) else None
    return tree
