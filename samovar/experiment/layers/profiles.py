"""Profiles: named changes of an experiment, of which only what can be changed may be said."""

from __future__ import annotations

from samovar.errors import Problem
from samovar.experiment.layers.merge import MAIN, OF_A_PART, OF_A_PROFILE
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node


def checked_profile(base: Map, profile: Map, problems: list[Problem]) -> Map:
    """Return the profile without what cannot be meant, reporting that."""
    result = profile.copied()
    for key in [key for key in result if key not in OF_A_PROFILE]:
        problems.append(profile.key_marks[key].problem(unknown("key of a profile", key, OF_A_PROFILE)))
        del result[key]
    if "parts" in result:
        result["parts"] = _known_parts(base, result["parts"], problems)
    return result


def _known_parts(base: Map, parts: Node, problems: list[Problem]) -> Map:
    names = _part_names(base) or [MAIN]
    kept = Map(parts.mark)
    if not isinstance(parts, Map):
        problems.append(parts.mark.problem(f"parts: expected a mapping with the keys {', '.join(names)}"))
        return kept
    for name, part in parts.items():
        if name not in names:
            problems.append(parts.key_marks[name].problem(unknown("part", name, names)))
        elif not isinstance(part, Map):
            message = f"{name}: expected a mapping with the keys {', '.join(OF_A_PART)}"
            problems.append(part.mark.problem(message))
        else:
            kept.put(name, part, parts.key_marks[name])
    return kept


def _part_names(tree: Map) -> list[str]:
    parts = tree.get("parts")
    return list(parts) if isinstance(parts, Map) else ["?"] if parts is not None else []
