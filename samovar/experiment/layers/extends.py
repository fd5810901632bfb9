"""Merge an experiment with what it reuses: the experiment it extends, and the fragments it uses.

Later layers override earlier ones, as profiles do, and top-level keys of a layer change the parts of weaker
layers as well. Every node keeps the position in the file that it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from samovar.errors import DefinitionError, Problem
from samovar.experiment.layers.merge import FRAGMENT_KEYS, merge_layer, merge_maps, unknown_key
from samovar.experiment.nearest import nearest, unknown
from samovar.experiment.yaml_tree import Map, Seq, Text, node_at, read_yaml, yaml_names, yaml_path

REUSE_KEYS = ("extends", "use", "fragments")
NEW_PART_KEYS = ("title", "factors", "include", "traffic", "path", "settings")
"""A part needs one of these keys to be new; `parts: {windw: {duration: 5s}}` is probably a typing error."""


@dataclass(frozen=True)
class MergedExperiment:
    """One tree that needs no other file, and the files that it was made from (the experiment first).

    It is not `complete` if a file or fragment is missing: then the errors of the tree may be due to that.
    """

    tree: Map
    sources: tuple[Path, ...]
    complete: bool = True


def merge_reused(tree: Map, path: Path, problems: list[Problem]) -> MergedExperiment:
    """Return an experiment merged over what it extends and uses; adds what is wrong to the problems."""
    files = _Files(problems, [path])
    merged = _merge_file(tree, path, (path.stem,), files)
    return MergedExperiment(
        _without_keys(merged, REUSE_KEYS), tuple(dict.fromkeys(files.sources)), not files.missing
    )


@dataclass
class _Files:
    """The files read for one experiment and their problems; `missing` if a file or fragment is missing."""

    problems: list[Problem]
    sources: list[Path]
    missing: bool = False

    def report_missing(self, *problems: Problem) -> None:
        """Add problems of a missing file or fragment; what depends on it is then not checked."""
        self.problems += problems
        self.missing = True

    def read(self, path: Path) -> Map | None:
        """Return the tree of a file that is reused, None if it cannot be read."""
        self.sources.append(path)
        try:
            tree, problems = read_yaml(path)
        except DefinitionError as error:
            self.report_missing(*error.problems)
            return None
        self.problems += problems
        return tree


def _merge_file(tree: Map, path: Path, trail: tuple[str, ...], files: _Files) -> Map:
    """Return a file's tree merged over its base and fragments; it still holds all fragments it knows."""
    base = _read_base(tree, path, trail, files)
    fragments = _read_fragments(base, tree, path.parent / "fragments", files)
    result = Map(tree.position)
    for layer in (base, *fragments.used_by(tree), _without_keys(fragments.expand(tree), REUSE_KEYS)):
        if layer is not None:
            _check_new_parts(result, layer, files.problems)
            result = merge_layer(result, layer, files.problems) if result else layer.copied()
    result.position = tree.position
    if fragments.own:
        result.put("fragments", fragments.own, tree.key_positions.get("fragments", tree.position))
    return result


def _check_new_parts(base: Map, layer: Map, problems: list[Problem]) -> None:
    """Report a part of a layer that the base lacks, has a similar name for, and that cannot be new."""
    known, parts = base.get("parts"), layer.get("parts")
    if not isinstance(known, Map) or not isinstance(parts, Map):
        return
    for name, part in parts.items():
        is_change = name not in known and isinstance(part, Map) and not {*NEW_PART_KEYS} & part.keys()
        if is_change and nearest(name, known):
            message = f"{unknown('part', name, known)}; a new part needs one of {', '.join(NEW_PART_KEYS)}"
            problems.append(parts.key_positions[name].problem(message))


def _read_base(tree: Map, path: Path, trail: tuple[str, ...], files: _Files) -> Map | None:
    """Return the merged tree of the experiment that a file extends, None without one."""
    name = tree.get("extends")
    if name is None:
        return None
    if not isinstance(name, str):
        files.report_missing(name.position.problem("extends: must be the name of one experiment"))
        return None
    known = [one for one in yaml_names(path.parent) if one != path.stem]
    if str(name) in trail:
        circle = " extends ".join([*trail[trail.index(str(name)) :], str(name)])
        files.report_missing(name.position.problem(f"{circle}; experiments must not extend each other"))
    elif str(name) not in known:
        files.report_missing(name.position.problem(unknown("experiment", name, known)))
    else:
        file = yaml_path(path.parent, str(name))
        other = files.read(file)
        return _merge_file(other, file, (*trail, str(name)), files) if other is not None else None
    return None


def _without_keys(tree: Map, keys: tuple[str, ...]) -> Map:
    result = tree.copied()
    for key in keys:
        result.pop(key, None)
        result.overridden.pop(key, None)
    return result


@dataclass
class _Fragments:
    """The fragments that a file may use: its own, those of the files it extends, and the folder's files."""

    own: Map
    folder: Path
    files: _Files
    _read: dict[str, Map | None] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    def used_by(self, tree: Map) -> Iterator[Map]:
        """Yield the fragments that a mapping uses, in order, each merged over those that it uses itself."""
        use = tree.get("use")
        for name in use if isinstance(use, Seq) else [] if use is None else [use]:
            if not isinstance(name, Text):
                message = "use: must be a name of a fragment or a list of names, such as [slow-link, lossy]"
                self.files.report_missing(name.position.problem(message))
                continue
            fragment = self._merged(name)
            if fragment is not None:
                yield fragment

    def expand(self, tree: Map) -> Map:
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
        for layer in (*self.used_by(tree), self.expand(tree)):
            result = merge_maps(result, layer, self.files.problems)
        return _without_keys(result, ("use",))

    def _merged(self, name: Text) -> Map | None:
        """Return one fragment merged over those that it uses; None, with a problem, if there is none."""
        word = str(name)
        if word in self._open:
            circle = " uses ".join([*self._open[self._open.index(word) :], word])
            message = f"fragment {circle}; fragments must not use each other"
            self.files.report_missing(name.position.problem(message))
            return None
        fragment = self._find(name)
        if fragment is None:
            return None
        self._open.append(word)
        merged = self._merge_over_used(fragment)
        self._open.pop()
        return merged

    def _find(self, name: Text) -> Map | None:
        word = str(name)
        in_folder = set(yaml_names(self.folder))
        own = self.own.get(word)
        if own is not None and word in in_folder:
            position = self.own.key_positions[word]
            message = f"fragment '{word}' is both in {position.file} and a file of fragments/; rename one"
            self.files.problems.append(position.problem(message))
        if own is not None:
            return own if isinstance(own, Map) else None
        if word not in in_folder:
            self.files.report_missing(
                name.position.problem(unknown("fragment", word, {*in_folder, *self.own}))
            )
            return None
        if word not in self._read:
            tree = self.files.read(yaml_path(self.folder, word))
            self._read[word] = None if tree is None else _known_keys(tree, self.files.problems)
        return self._read[word]


def _read_fragments(base: Map | None, tree: Map, folder: Path, files: _Files) -> _Fragments:
    """Return the fragments of a file and its base; reports what is not a fragment."""
    own = Map(tree.position)
    for layer in (base, tree):
        fragments = node_at(layer, "fragments")
        if isinstance(fragments, Map):
            own = merge_maps(own, fragments, files.problems)
        elif fragments is not None:
            files.report_missing(
                fragments.position.problem("fragments: must be a mapping of names to mappings")
            )
    for name, fragment in list(own.items()):
        if isinstance(fragment, Map):
            own[name] = _known_keys(fragment, files.problems)
        else:
            given = "a list" if isinstance(fragment, Seq) else f"'{fragment}'"
            message = f"{name}: a fragment must be a mapping, not {given}"
            files.report_missing(fragment.position.problem(message))
    return _Fragments(own, folder, files)


def _known_keys(fragment: Map, problems: list[Problem]) -> Map:
    """Return a fragment without unknown keys, which are reported."""
    result = fragment.copied()
    for key in [key for key in fragment if key not in FRAGMENT_KEYS]:
        message = unknown_key("key of a fragment", key, FRAGMENT_KEYS)
        problems.append(fragment.key_positions[key].problem(message))
        del result[key]
    return result
