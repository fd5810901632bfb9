"""JSON Schema of an experiment file: its models, what recipes take, and how layers lie over each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial as bound

from samovar.experiment import FRAGMENT_KEYS, GENERATOR_KEYS, PART_KEYS, PROFILE_KEYS
from samovar.experiment.keys import DEVICE_PARAMETERS as DEVICES
from samovar.experiment.keys import Experiment, Flow, Logger, NetworkPath, Part, Strict, notation, own_keys
from samovar.experiment.outputs import COMMON, Exhibits
from samovar.schema import recipe_schema as of_recipes
from samovar.schema.distribution_schema import distribution_schema
from samovar.schema.factor_schema import FactorSchema
from samovar.schema.json_schema import Json, any_of, at_least_one, closed, ways
from samovar.schema.model_schema import (
    DRAFT,
    Definitions,
    Special,
    own_fields,
)
from samovar.schema.recipe_schema import Recipes, Taken
from samovar.schema.targets import SCALAR

KIND_OF: Mapping[type[Strict], tuple[str, str]] = {
    Flow: ("generator", "generator"),
    Logger: ("logger", "logger"),
    NetworkPath: ("aqm", "aqm"),
}
"""Models whose other keys are parameters: the kind of recipe, and the key that names it."""

LABELS: Json = any_of(SCALAR, {"type": "array", "items": SCALAR, "minItems": 1})


class ExperimentSchema:
    """Makes the schema of experiments, and of the pieces that they reuse."""

    def __init__(self, recipes: Recipes, exhibits: Exhibits) -> None:
        self.recipes, self._exhibits = recipes, exhibits
        self.definitions = Definitions(self._special())
        self.factors = FactorSchema(self.definitions, recipes)

    def _special(self) -> dict[tuple[str, str], Special]:
        drawn = {"figures": "figure", "tables": "table"}
        return {
            ("", "factors"): lambda *_: self.factors.factors(),
            ("", "settings"): lambda *_: self.factors.settings(),
            ("", "exclude"): lambda *_: _lines(LABELS),
            ("", "include"): lambda *_: _lines(any_of(SCALAR, {"type": "object", "minProperties": 1})),
            ("", "traffic"): lambda *_: self._listed(),
            ("", "loggers"): lambda *_: self._listed_loggers(),
            ("", "path"): lambda *_: self._path(),
            ("", "use"): lambda *_: self._names(),
            ("Flow", "start"): lambda *_: self._or_random(notation.DELAY_OR_FORMULA),
            ("Flow", "size"): lambda *_: self._or_random(notation.SIZE_OR_FORMULA),
            ("Flow", "duration"): lambda *_: self._or_random(notation.TIME_OR_FORMULA),
            ("Flow", "generator"): lambda *_: of_recipes.choice(self.recipes, "generator"),
            ("Logger", "logger"): lambda *_: of_recipes.choice(self.recipes, "logger"),
            ("NetworkPath", "aqm"): lambda *_: self._aqm(),
            ("Expect", "where"): lambda *_: {"type": "object", "additionalProperties": LABELS},
            ("Experiment", "parts"): lambda *_: self._named_parts(),
            ("Experiment", "profiles"): lambda *_: self._named(self._profile()),
            ("Experiment", "fragments"): lambda *_: self._named(self.fragment()),
            **{("Experiment", key): bound(self._drawn, one) for key, one in drawn.items()},
        }

    def root(self) -> Json:
        """Return the whole file's object."""
        properties = self.definitions.properties(Experiment, partial=True)
        alone = {"not": any_of({"required": ["extends"]}, {"required": ["use"]})}
        rules = [
            {"if": {"not": {"required": ["extends"]}}, "then": {"required": ["testbed"]}},
            {"if": {"allOf": [alone, {"not": {"required": ["parts"]}}]}, "then": {"required": ["traffic"]}},
            {"if": alone, "then": {"properties": {**_complete(), "factors": self.factors.said_here()}}},
            {
                "if": {"allOf": [alone, {"not": {"required": ["factors"]}}]},
                "then": {"properties": {"parts": {"additionalProperties": self._said_in_part()}}},
            },
            {
                "if": {"allOf": [alone, {"not": {"required": ["traffic"]}}]},
                "then": {"properties": {"parts": {"additionalProperties": at_least_one("traffic", "use")}}},
            },
        ]
        return closed(properties, required=["experiment"], allOf=rules)

    def _said_in_part(self) -> Json:
        """Return what holds of the factors of a part that lies over no other's."""
        own = {"properties": {"factors": self.factors.said_here()}}
        return {"if": {"not": {"required": ["use"]}}, "then": own}

    def fragment(self) -> Json:
        """Return a piece of experiments and parts that has a name of its own."""
        return self.definitions.refer("Fragment", lambda: self._layer(FRAGMENT_KEYS, "A piece for `use`."))

    def _profile(self) -> Json:
        words = "Changes that lie over the experiment with --profile."
        return self.definitions.refer("Profile", lambda: self._layer((*PROFILE_KEYS, "use"), words))

    def _layer(self, keys: tuple[str, ...], words: str) -> Json:
        fields = dict(own_fields(Experiment))
        known = [key for key in fields if key in keys]
        properties = {key: self.definitions.property(Experiment, key, fields[key], True) for key in known}
        return closed(properties, description=words)

    def _named(self, one: Json) -> Json:
        pattern = str(notation.NAME.schema["pattern"])
        return {"type": "object", "additionalProperties": one, "propertyNames": {"pattern": pattern}}

    def _named_parts(self) -> Json:
        return self._named(self.definitions.refer("Part", self._part))

    def _part(self) -> Json:
        fields = dict(own_fields(Part))
        assert fields.keys() >= set(PART_KEYS)
        words = "One matrix, over what stands at the top level."
        return closed(self.definitions.properties(Part, partial=True), description=words)

    def _names(self) -> Json:
        name = self.definitions.form(notation.NAME)
        return any_of(name, {"type": "array", "items": name})

    def _or_random(self, form: notation.Form) -> Json:
        value = self.definitions.form(form)
        name = f"Random-{form.name.split(',')[0]}"
        return any_of(value, self.definitions.refer(name, lambda: distribution_schema(value)))

    def _aqm(self) -> Json:
        one = of_recipes.choice(self.recipes, "aqm")
        return any_of(one, closed(ways(one), minProperties=1))

    def _drawn(self, kind: str, *_: object) -> Json:
        """Return the figures or tables: names, or mappings with options; factors are options as well."""
        known = self._exhibits.get(kind, {})
        titles = [one.title for one in known.values()]
        name: Json = {"enum": list(known), "enumDescriptions": titles} if known else {"type": "string"}
        own: dict[str, list[str]] = {}
        for one, exhibit in known.items():
            for option in exhibit.options:
                own.setdefault(option, []).append(one)
        words = COMMON | {option: f"Option of {', '.join(names)}." for option, names in own.items()}
        options = {option: {"description": text} for option, text in words.items()}
        several = any_of(SCALAR, {"type": "array", "items": SCALAR, "minItems": 1})
        options |= {one: {**several, "description": COMMON[one]} for one in ("part", "trial")}
        options["title"] = {**SCALAR, "description": COMMON["title"]}
        told = {kind: {**name, "description": f"Name of the {kind}."}}
        entry = {"type": "object", "properties": {**told, **options}, "required": [kind]}
        return {"type": "array", "items": any_of(name, entry)}

    # Objects with the parameters of a recipe beside their own keys.

    def _path(self) -> Json:
        return self.definitions.refer("Path", lambda: self._with(NetworkPath, True))

    def _flow(self, partial: bool) -> Json:
        name = f"Flow{'Change' if partial else ''}"
        return self.definitions.refer(name, lambda: self._with(Flow, partial))

    def _listed(self) -> Json:
        entries = {"type": "array", "items": self._flow(False)}
        return any_of(entries, {**self._named(self._flow(True)), "description": "Changes of flows by label."})

    def _listed_loggers(self) -> Json:
        make = bound(self._with, Logger, False)
        entries = {"type": "array", "items": self.definitions.refer("Logger", make)}
        own = self.definitions.properties(Logger, partial=True)
        changes = {
            name: {"description": self.recipes.summary("logger", name)}
            | closed({**own, **self._parameters(Logger, name)})
            for name in self.recipes.names("logger")
        }
        by_name = self.definitions.refer("LoggerChanges", lambda: closed(changes))
        return any_of(entries, {**by_name, "description": "Changes of loggers by their recipes."})

    def _with(self, model: type[Strict], partial: bool) -> Json:
        """Return a model's object whose other keys are parameters of the recipe that it names."""
        kind, key = KIND_OF[model]
        made = self.definitions.object(model, partial)
        own = list(made["properties"])
        del made["additionalProperties"]
        named = {"properties": {key: {"enum": self.recipes.names(kind)}}, "required": [key]}
        every = {name: one for name, one in self._every(kind).items() if name not in own}
        other = {"if": {"not": named}, "then": closed({**dict.fromkeys(own, True), **every})}
        made["allOf"] = [*made.get("allOf", []), *self._of_each(model, own), other]
        return made

    def _every(self, kind: str) -> Json:
        """Return the parameters that any recipe of a kind takes; of a path, those of devices too."""
        devices = DEVICES if kind == "aqm" else {}
        own = {key: of_recipes.parameter(self.definitions, [Taken("", one)]) for key, one in devices.items()}
        return {**of_recipes.union(self.definitions, self.recipes, kind), **own}

    def _of_each(self, model: type[Strict], own: list[str]) -> Iterator[Json]:
        """Yield what holds beside each recipe: its parameters, and no others."""
        kind, key = KIND_OF[model]
        for name in self.recipes.names(kind):
            takes = self.recipes.parameters(kind, name)
            here = [one for one in own if kind != "generator" or one not in GENERATOR_KEYS or one in takes]
            keys = {**dict.fromkeys(here, True), **self._parameters(model, name)}
            yield {"if": {"properties": {key: {"const": name}}, "required": [key]}, "then": closed(keys)}

    def _parameters(self, model: type[Strict], name: str) -> Json:
        known = of_recipes.parameters(self.definitions, self.recipes, KIND_OF[model][0], name)
        return {key: one for key, one in known.items() if key not in own_keys(model)}


def _lines(level: Json) -> Json:
    line = {"type": "object", "minProperties": 1, "additionalProperties": level}
    return {"type": "array", "items": line}


def _complete() -> Json:
    """Return what holds for parts of a file that lies over no other."""
    return {
        "path": {"properties": {"delay": {"required": ["down", "up"]}}},
        "parts": {"minProperties": 1},
        "stop": at_least_one("after", "when"),
    }


def _document(maker: ExperimentSchema, root: Json) -> Json:
    defs = dict(sorted(maker.definitions.schemas.items()))
    return {"$schema": DRAFT, **root, "$defs": defs}


def experiment_schema(recipes: Recipes, exhibits: Exhibits) -> Json:
    """Return the schema of experiments/NAME.yaml; without exhibits, figures and tables may have any name."""
    maker = ExperimentSchema(recipes, exhibits)
    return _document(maker, maker.root())


def fragment_schema() -> Json:
    """Return the schema of experiments/fragments/NAME.yaml, which is a part of that of experiments."""
    return {"$schema": DRAFT, "$ref": "experiment.json#/$defs/Fragment"}
