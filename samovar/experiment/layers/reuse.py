"""Merge an experiment with the experiment that it extends and with its fragments, and read its profiles.

Later layers override earlier ones, and top-level keys of a layer also change the parts of weaker layers.
Every node keeps the position in the file that it comes from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from samovar.errors import DefinitionError, Problem, nearest, unknown
from samovar.experiment.layers.merge import (
    FRAGMENT_KEYS,
    MAIN,
    PROFILE_KEYS,
    merge_layer,
    merge_maps,
    with_upstream_queue,
)
from samovar.experiment.yaml_tree import Map, Position, Seq, Text, map_at, read_yaml, yaml_names, yaml_path

REUSE_KEYS = ("extends", "use", "fragments")
NEW_PART_KEYS = ("title", "factors", "include", "traffic", "path", "settings")
"""A new part needs one of these keys. Without one, `parts: {windw: …}` is taken as a misspelt `window`."""


@dataclass(frozen=True)
class MergedExperiment:
    """An experiment's tree merged with all files that it reuses.

    `sources` are the paths of these files; the experiment's own file is first. `complete` is false if a file
    or fragment is missing or invalid. Other errors in the tree may then be consequences of this.
    """

    tree: Map
    sources: tuple[Path, ...]
    complete: bool = True


def merge_reused(tree: Map, path: Path, problems: list[Problem]) -> MergedExperiment:
    """Merge an experiment over its base and its fragments. Errors are added to `problems`."""
    reuse = _Reuse(path, problems)
    merged = with_upstream_queue(reuse.merge_file(tree, (path.stem,)))
    return MergedExperiment(merged, tuple(dict.fromkeys(reuse.sources)), not reuse.missing)


class _Reuse:
    """Reads and merges the files of one experiment. `missing` is true if one of them is unusable."""

    def __init__(self, path: Path, problems: list[Problem]) -> None:
        self.folder, self.sources, self.problems, self.missing = path.parent, [path], problems, False
        self.fragments = Map(Position(str(path), 1, 1))
        """Fragments of the files merged so far. Fragments in the folder fragments/ are read when used."""
        self._open: list[str] = []

    def merge_file(self, tree: Map, trail: tuple[str, ...]) -> Map:
        """Return a file's tree merged over its base and the fragments that it uses."""
        base = self._read_base(tree, trail)
        self._add_fragments(tree)
        result = Map(tree.position)
        for layer in (base, *self._used_by(tree), self._expand(tree).without(REUSE_KEYS)):
            if layer is not None:
                self._check_new_parts(result, layer)
                result = merge_layer(result, layer, self.problems) if result else layer.copied()
        result.position = tree.position
        return result

    def _refuse(self, position: Position, message: str) -> None:
        """Report a missing or invalid file or fragment. The merged tree is then not checked."""
        self.problems.append(position.problem(message))
        self.missing = True

    def _read(self, path: Path) -> Map | None:
        self.sources.append(path)
        tree = read_or_report(path, self.problems)
        self.missing |= tree is None
        return tree

    def _read_base(self, tree: Map, trail: tuple[str, ...]) -> Map | None:
        """Return the merged tree of the experiment that a file extends, or None if it extends none."""
        name = tree.get("extends")
        if name is None:
            return None
        known = [one for one in yaml_names(self.folder) if one != trail[-1]]
        if not isinstance(name, Text):
            self._refuse(name.position, "extends: must be the name of one experiment")
        elif name in trail:
            circle = " extends ".join([*trail[trail.index(name) :], name])
            self._refuse(name.position, f"{circle}; experiments must not extend each other")
        elif name not in known:
            self._refuse(name.position, unknown("experiment", name, known))
        else:
            base = self._read(yaml_path(self.folder, name))
            return None if base is None else self.merge_file(base, (*trail, str(name)))
        return None

    def _check_new_parts(self, base: Map, layer: Map) -> None:
        """Report incomplete parts that are not in the base; their names are probably misspelt."""
        known, parts = base.get("parts"), layer.get("parts")
        if not isinstance(known, Map) or not isinstance(parts, Map):
            return
        for name, part in parts.items():
            is_change = name not in known and isinstance(part, Map) and not {*NEW_PART_KEYS} & part.keys()
            if is_change and nearest(name, known):
                message = f"{unknown('part', name, known)}; a new part needs one of "
                problem = parts.key_positions[name].problem(message + ", ".join(NEW_PART_KEYS))
                self.problems.append(problem)

    def _add_fragments(self, tree: Map) -> None:
        """Add the fragments of a file to those of its base. Report invalid fragments."""
        own = tree.get("fragments")
        if isinstance(own, Map):
            self.fragments = merge_maps(self.fragments, own, self.problems)
        elif own is not None:
            self._refuse(own.position, "fragments: must be a mapping of names to mappings")
        for name, fragment in list(self.fragments.items()):
            if isinstance(fragment, Map):
                self.fragments[name] = self._known_keys(fragment)
            else:
                self._refuse(fragment.position, f"{name}: a fragment must be a mapping")

    def _known_keys(self, fragment: Map) -> Map:
        return _only_known("key of a fragment", fragment, FRAGMENT_KEYS, self.problems)

    def _used_by(self, tree: Map) -> Iterator[Map]:
        """Yield the fragments that a mapping uses, in order, each merged over the fragments it uses."""
        use = tree.get("use")
        if isinstance(use, Seq) and not use:
            self._refuse(use.position, "use: is empty; it needs at least one fragment")
        for name in use if isinstance(use, Seq) else [] if use is None else [use]:
            if not isinstance(name, Text):
                message = "use: must be a name of a fragment or a list of names, such as [slow-link, lossy]"
                self._refuse(name.position, message)
            elif name in self._open:
                circle = " uses ".join([*self._open[self._open.index(name) :], name])
                self._refuse(name.position, f"fragment {circle}; fragments must not use each other")
            elif (fragment := self._find(name)) is not None:
                self._open.append(name)
                yield self._merge_over_used(fragment)
                self._open.pop()

    def _expand(self, tree: Map) -> Map:
        """Return a mapping with its parts and profiles merged over the fragments that they use."""
        result = tree.copied()
        for key in ("parts", "profiles"):
            group = tree.get(key)
            if isinstance(group, Map):
                result[key] = expanded = group.copied()
                for name, one in group.items():
                    expanded[name] = self._merge_over_used(one) if isinstance(one, Map) else one
        return result

    def _merge_over_used(self, tree: Map) -> Map:
        result = Map(tree.position)
        for layer in (*self._used_by(tree), self._expand(tree)):
            result = merge_maps(result, layer, self.problems)
        return result.without(["use"])

    def _find(self, name: Text) -> Map | None:
        """Return a fragment from the merged files or the folder fragments/; report it if it is missing."""
        folder = self.folder / "fragments"
        in_folder = set(yaml_names(folder))
        if name not in self.fragments and name in in_folder:
            tree = self._read(yaml_path(folder, name))
            return None if tree is None else self._known_keys(tree)
        if name not in self.fragments:
            self._refuse(name.position, unknown("fragment", name, {*in_folder, *self.fragments}))
            return None
        if name in in_folder:
            position = self.fragments.key_positions[name]
            message = f"fragment '{name}' is in {position.file} and also a file in fragments/; rename one"
            self.problems.append(position.problem(message))
        return map_at(self.fragments, name)


def read_or_report(path: Path, problems: list[Problem]) -> Map | None:
    """Return the tree of a file, or None if it cannot be read. Errors are added to `problems`."""
    try:
        tree, found = read_yaml(path)
    except DefinitionError as error:
        problems += error.problems
        return None
    problems += found
    return tree


def _only_known(what: str, tree: Map, known: Collection[str], problems: list[Problem]) -> Map:
    """Return a mapping without its unknown keys, and report the unknown keys."""
    others = [key for key in tree if key not in known]
    problems += [tree.key_positions[key].problem(unknown(what, key, known)) for key in others]
    return tree.without(others)


def read_profiles(tree: Map, problems: list[Problem]) -> dict[str, Map]:
    """Return the profiles of an experiment by name, without keys that profiles cannot change.

    Such keys are added to `problems`.
    """
    found: dict[str, Map] = {}
    names = list(map_at(tree, "parts") or ["?"]) if "parts" in tree else [MAIN]
    for name, profile in (map_at(tree, "profiles") or {}).items():
        if not isinstance(profile, Map):
            problems.append(profile.position.problem(f"{name}: a profile must be a mapping"))
            continue
        found[name] = known = _only_known("key of a profile", profile, PROFILE_KEYS, problems)
        parts = known.get("parts")
        if isinstance(parts, Map):
            known["parts"] = _only_known("part", parts, names, problems)
    return found
