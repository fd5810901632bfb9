"""Profiles of an experiment: named changes such as a quick run."""

from __future__ import annotations

from collections.abc import Iterable

from samovar.errors import DefinitionError, Problem
from samovar.experiment.layers.merge import MAIN, PART_KEYS, PROFILE_KEYS, unknown_key
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml_tree import Map, Node
from samovar.units import quoted


def read_profiles(tree: Map, problems: list[Problem]) -> dict[str, Map]:
    """Return the profiles of an experiment by name, without what a profile cannot change; reports that."""
    profiles = tree.get("profiles")
    found: dict[str, Map] = {}
    for name, profile in profiles.items() if isinstance(profiles, Map) else ():
        if isinstance(profile, Map):
            found[name] = _known_changes(tree, profile, problems)
        else:
            given = "a list" if isinstance(profile, list) else quoted(profile) if profile else "nothing"
            problems.append(profile.position.problem(f"{name}: a profile must be a mapping, not {given}"))
    return found


def read_profile(tree: Map, name: str, problems: list[Problem]) -> Map:
    """Return one profile like read_profiles; raises DefinitionError if the experiment does not have it."""
    profiles = tree.get("profiles")
    known = profiles if isinstance(profiles, Map) else Map(tree.position)
    profile = known.get(name)
    if not isinstance(profile, Map):
        raise DefinitionError([Problem(tree.position.file, 0, 0, unknown_profile(tree, name, known))])
    return _known_changes(tree, profile, problems)


def unknown_profile(tree: Map, name: str, known: Iterable[str]) -> str:
    """Return the message for a profile that an experiment does not have."""
    return unknown(f"profile of {tree.get('experiment', 'the experiment')}", name, known)


def _known_changes(base: Map, profile: Map, problems: list[Problem]) -> Map:
    result = profile.copied()
    for key in [key for key in result if key not in PROFILE_KEYS]:
        message = unknown_key("key of a profile", key, PROFILE_KEYS)
        problems.append(profile.key_positions[key].problem(message))
        del result[key]
    if "parts" in result:
        result["parts"] = _known_parts(base, result["parts"], problems)
    return result


def _known_parts(base: Map, changes: Node, problems: list[Problem]) -> Map:
    """Return the changes of parts that the experiment has; reports the others."""
    parts = base.get("parts")
    names = list(parts) if isinstance(parts, Map) else ["?"] if parts is not None else [MAIN]
    known = Map(changes.position)
    if not isinstance(changes, Map):
        message = f"parts: must be a mapping with the keys {', '.join(names)}"
        problems.append(changes.position.problem(message))
        return known
    for name, part in changes.items():
        if name not in names:
            problems.append(changes.key_positions[name].problem(unknown("part", name, names)))
        elif not isinstance(part, Map):
            message = f"{name}: must be a mapping with the keys {', '.join(PART_KEYS)}"
            problems.append(part.position.problem(message))
        else:
            known.put(name, part, changes.key_positions[name])
    return known
