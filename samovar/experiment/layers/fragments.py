"""Named pieces of experiments: in the file's own `fragments`, or files of experiments/fragments/."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from samovar.errors import DefinitionError, Problem
from samovar.experiment.layers.merge import OF_A_PROFILE, merged
from samovar.experiment.layers.without import WITHOUT
from samovar.experiment.nearest import unknown
from samovar.experiment.yaml.tree import Map, Node, Seq, near, read_yaml, yaml_files

OF_A_FRAGMENT = tuple(sorted({*OF_A_PROFILE, "expect", "profiles", "title", "use"} - {WITHOUT}))
EXPECTED = "expected the names of fragments, such as [slow-link, lossy]"


@dataclass
class Reading:
    """What reading an experiment with all that it reuses has come to; `missing` says that something is."""

    problems: list[Problem]
    sources: list[Path]
    missing: bool = False

    def lack(self, *problems: Problem) -> None:
        """Note that something cannot be had, so that what depends on it is not worth checking."""
        self.problems += problems
        self.missing = True

    def read(self, path: Path) -> Map | None:
        """Read one file of those that are reused."""
        self.sources.append(path)
        try:
            tree, mistakes = read_yaml(path)
        except DefinitionError as error:
            self.lack(*error.problems)
            return None
        self.problems += mistakes
        return tree


@dataclass
class Fragments:
    """The fragments that one file knows: its own, those of the files it extends, and the folder's."""

    own: Map
    folder: Path
    reading: Reading
    _read: dict[str, Map | None] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, base: Map | None, tree: Map, folder: Path, reading: Reading) -> Fragments:
        """Gather what a file and its base define; what is no fragment is reported."""
        own = Map(tree.mark)
        for layer in (base, tree):
            given = layer.get("fragments") if layer is not None else None
            if isinstance(given, Map):
                own = merged(own, given, reading.problems)
            elif given is not None:
                message = "fragments: expected a mapping of names to their contents"
                reading.lack(given.mark.problem(message))
        fragments = cls(own, folder, reading)
        fragments._check()
        return fragments

    def used_by(self, tree: Map) -> Iterator[Map]:
        """Yield the fragments that a mapping uses, in order, complete."""
        for name in self._used_names(tree.get("use")):
            fragment = self._named(name)
            if fragment is not None:
                yield fragment

    def expanded(self, tree: Map) -> Map:
        """Return a mapping whose parts and profiles lie over the fragments that they use."""
        result = tree.copied()
        for key in ("parts", "profiles"):
            group = tree.get(key)
            if isinstance(group, Map):
                result[key] = whole = group.copied()
                for name, one in group.items():
                    whole[name] = self._over_used(one) if isinstance(one, Map) else one
        return result

    def _over_used(self, tree: Map) -> Map:
        result = Map(tree.mark)
        for layer in (*self.used_by(tree), self.expanded(tree)):
            result = merged(result, layer, self.reading.problems)
        result.pop("use", None)
        result.hidden.pop("use", None)
        return result

    def _used_names(self, use: Node | None) -> Iterator[Node]:
        names = use if isinstance(use, Seq) else [] if use is None else [use]
        for name in names:
            if isinstance(name, str):
                yield name
            else:
                self.reading.lack(name.mark.problem(f"use: {EXPECTED}"))

    def _named(self, name: Node) -> Map | None:
        """Return one fragment over those that it uses itself, or report that there is none."""
        word = str(name)
        if word in self._open:
            circle = " uses ".join([*self._open[self._open.index(word) :], word])
            self.reading.lack(name.mark.problem(f"fragment {circle}; expected fragments that end"))
            return None
        found = self._found(word, name)
        if found is None:
            return None
        self._open.append(word)
        whole = self._over_used(found)
        self._open.pop()
        return whole

    def _found(self, word: str, name: Node) -> Map | None:
        files = {path.stem for path in yaml_files(self.folder)}
        own = self.own.get(word)
        if own is not None and word in files:
            both = f"fragment '{word}' stands in {self.own.key_marks[word].file} and as a file of fragments/"
            self.reading.problems.append(self.own.key_marks[word].problem(f"{both}; expected it once"))
        if own is None and word not in files:
            self.reading.lack(name.mark.problem(unknown("fragment", word, {*files, *self.own})))
        elif own is None:
            return self._file(word)
        return own if isinstance(own, Map) else None

    def _file(self, name: str) -> Map | None:
        if name not in self._read:
            tree = self.reading.read(near(self.folder, name))
            self._read[name] = self._known_keys(tree) if tree is not None else None
        return self._read[name]

    def _check(self) -> None:
        for name, fragment in list(self.own.items()):
            if isinstance(fragment, Map):
                self.own[name] = self._known_keys(fragment)
            else:
                given = "a list" if isinstance(fragment, Seq) else f"'{fragment}'"
                message = f"{name}: expected a mapping of what the fragment says, not {given}"
                self.reading.lack(fragment.mark.problem(message))

    def _known_keys(self, fragment: Map) -> Map:
        """Return a fragment without what no experiment and no part can take, reporting that."""
        result = fragment.copied()
        for key in [key for key in fragment if key not in OF_A_FRAGMENT]:
            mark = fragment.key_marks[key]
            self.reading.problems.append(mark.problem(unknown("key of a fragment", key, OF_A_FRAGMENT)))
            del result[key]
        return result
