"""JSON Schemas for editors, one per kind of file: experiments, fragments, testbeds, studies, config.yaml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial as bound

from samovar.experiment import (
    COMMON_OPTIONS,
    DEVICE_PARAMETERS,
    FRAGMENT_KEYS,
    GENERATOR_KEYS,
    NAME,
    PART_KEYS,
    PROFILE_KEYS,
    Arrivals,
    Config,
    Experiment,
    Flow,
    Logger,
    NetworkPath,
    Outputs,
    Part,
    Strict,
    StudyReport,
    Testbed,
    keys_of,
    own_keys,
)
from samovar.schema.factor_schema import SCALAR, FactorSchema
from samovar.schema.model_schema import (
    DRAFT,
    Definitions,
    Json,
    Special,
    any_of,
    at_least_one,
    closed,
    directions,
    several,
    when,
)
from samovar.schema.recipe_schema import (
    Recipes,
    SystemParameter,
    parameter_schema,
    parameter_schemas,
    recipe_choice,
    union_of_parameters,
)

RECIPE_KEYS: Mapping[type[Strict], tuple[str, str]] = {
    Flow: ("generator", "generator"),
    Logger: ("logger", "logger"),
    NetworkPath: ("aqm", "aqm"),
}
"""Models whose other keys are parameters: the kind of recipe, and the key that names it."""
LABELS: Json = any_of(SCALAR, several(SCALAR))


class ExperimentSchema:
    """Builds the schema of experiments, and of the fragments that they use."""

    def __init__(self, recipes: Recipes, outputs: Outputs) -> None:
        self._recipes, self._manifest = recipes, outputs
        self.definitions = Definitions(self._special())
        self._factors = FactorSchema(self.definitions, recipes)

    def _special(self) -> dict[tuple[str, str], Special]:
        return {
            ("", "factors"): lambda *_: self._factors.factors(),
            ("", "settings"): lambda *_: self._factors.settings(),
            ("", "exclude"): lambda *_: _lines(LABELS),
            ("", "include"): lambda *_: _lines(any_of(SCALAR, {"type": "object", "minProperties": 1})),
            ("", "traffic"): lambda *_: self._flows(),
            ("", "loggers"): lambda *_: self._loggers(),
            ("", "path"): lambda *_: self.definitions.refer("Path", lambda: self._with(NetworkPath, True)),
            ("", "use"): lambda *_: self._names(),
            ("Flow", "generator"): lambda *_: recipe_choice(self.definitions, self._recipes, "generator"),
            ("Logger", "logger"): lambda *_: recipe_choice(self.definitions, self._recipes, "logger"),
            ("Expect", "metric"): lambda *_: self.definitions.refer("metric", self._metric),
            ("NetworkPath", "aqm"): lambda *_: self._aqm(),
            ("Expect", "where"): lambda *_: {"type": "object", "additionalProperties": LABELS},
            ("Experiment", "parts"): lambda *_: _by_name(self.definitions.refer("Part", self._part)),
            ("Experiment", "profiles"): lambda *_: _by_name(self._profile()),
            ("Experiment", "fragments"): lambda *_: _by_name(self._fragment()),
            ("Experiment", "figures"): bound(self._outputs, "figure"),
            ("Experiment", "tables"): bound(self._outputs, "table"),
        }

    def document(self) -> Json:
        """Return the schema of a whole file."""
        properties = self.definitions.properties(Experiment, partial=True)
        alone = {"not": any_of({"required": ["extends"]}, {"required": ["use"]})}
        complete = self._factors.complete_factors()
        complete_part = {"if": {"not": {"required": ["use"]}}, "then": {"properties": {"factors": complete}}}

        def without(key: str, then: Json) -> Json:
            return {"if": {"allOf": [alone, {"not": {"required": [key]}}]}, "then": then}

        def of_parts(rule: Json) -> Json:
            return {"properties": {"parts": {"additionalProperties": rule}}}

        rules = [
            {"if": {"not": {"required": ["extends"]}}, "then": {"required": ["testbed"]}},
            {"if": alone, "then": {"properties": {**_whole(), "factors": complete}}},
            without("parts", {"required": ["traffic"]}),
            without("factors", of_parts(complete_part)),
            without("traffic", of_parts(at_least_one("traffic", "use"))),
        ]
        self._fragment()
        return _document(self.definitions, closed(properties, required=["experiment"], allOf=rules))

    def _fragment(self) -> Json:
        return self.definitions.refer("Fragment", lambda: self._layer(FRAGMENT_KEYS, "A fragment for `use`."))

    def _profile(self) -> Json:
        words = "Changes of the experiment, for --profile."
        return self.definitions.refer("Profile", lambda: self._layer((*PROFILE_KEYS, "use"), words))

    def _layer(self, names: tuple[str, ...], words: str) -> Json:
        known = {name: key for name, key in keys_of(Experiment).items() if name in names}
        properties = {name: self.definitions.property(Experiment, key, True) for name, key in known.items()}
        return closed(properties, description=words)

    def _part(self) -> Json:
        assert own_keys(Part) >= set(PART_KEYS)
        words = "One matrix; its values override those at the top level."
        return closed(self.definitions.properties(Part, partial=True), description=words)

    def _names(self) -> Json:
        name = self.definitions.of_type(NAME)
        return any_of(name, {"type": "array", "items": name})

    def _aqm(self) -> Json:
        one = recipe_choice(self.definitions, self._recipes, "aqm")
        return any_of(one, self.definitions.refer("mapping-aqm-per-direction", lambda: directions(one)))

    def _metric(self) -> Json:
        metrics = self._manifest.metrics
        described = [f"{one.what} ({one.unit})" for one in metrics.values()]
        return {"enum": list(metrics), "enumDescriptions": described}

    def _outputs(self, kind: str, *_: object) -> Json:
        return self.definitions.refer(f"{kind}s", lambda: self._make_outputs(kind))

    def _make_outputs(self, kind: str) -> Json:
        """Return the figures or tables: names, or mappings with options; factors are options as well."""
        known = self._manifest.kinds[kind]
        names: Json = {"enum": list(known), "enumDescriptions": [one.what for one in known.values()]}
        names["description"] = f"Name of the {kind}."
        name = self.definitions.refer(kind, lambda: names)
        own: dict[str, dict[str, list[str]]] = {}
        for one, output in known.items():
            for option, info in output.options.items():
                own.setdefault(option, {}).setdefault(info.what, []).append(one)
        options: Json = {
            option: {"description": " ".join(f"{', '.join(of)}: {what}" for what, of in texts.items())}
            for option, texts in own.items()
        }
        options |= {one: {**LABELS, "description": COMMON_OPTIONS[one]} for one in ("part", "trial")}
        options["title"] = {**SCALAR, "description": COMMON_OPTIONS["title"]}
        entry = {
            "type": "object",
            "properties": {kind: name, **options},
        }
        return {"type": "array", "items": any_of(name, {**entry, "required": [kind]})}

    # Objects with the parameters of a recipe beside their own keys.

    def _flows(self) -> Json:
        change = self.definitions.refer("FlowChange", lambda: self._with(Flow, True))
        whole = self.definitions.refer("Flow", lambda: self._whole_flow(change))
        changes = {**_by_name(change), "description": "Changes of flows, by label."}
        return any_of({"type": "array", "items": whole}, changes)

    def _whole_flow(self, change: Json) -> Json:
        """Return a flow with all that it needs: a change of one, complete."""
        required = [name for name, key in keys_of(Flow).items() if key.field.is_required()]
        whole = {"properties": {"arrivals": self.definitions.model(Arrivals)}, "required": required}
        return {"allOf": [change, whole]}

    def _loggers(self) -> Json:
        whole = self.definitions.refer("Logger", lambda: self._with(Logger, False))
        by_name = self.definitions.refer("LoggerChanges", self._logger_changes)
        return any_of(
            {"type": "array", "items": whole}, {**by_name, "description": "Changes of loggers, by recipe."}
        )

    def _logger_changes(self) -> Json:
        own = {"type": "object", "properties": self.definitions.properties(Logger, partial=True)}
        change = self.definitions.refer("LoggerChange", lambda: own)
        changes = {
            name: {"allOf": [change, self._only(Logger, own_keys(Logger), name)]}
            | {"description": self._recipes.summary("logger", name)}
            for name in self._recipes.names("logger")
        }
        return closed(changes)

    def _with(self, model: type[Strict], partial: bool) -> Json:
        """Return a model's object whose other keys are parameters of the recipe that it names."""
        kind, key = RECIPE_KEYS[model]
        made = self.definitions.object(model, partial)
        del made["additionalProperties"]
        every = union_of_parameters(self.definitions, self._recipes, kind)
        if model is NetworkPath:
            devices = DEVICE_PARAMETERS.items()
            every |= {
                name: parameter_schema(self.definitions, [SystemParameter("", one)]) for name, one in devices
            }
        named = {"properties": {key: {"enum": self._recipes.names(kind)}}, "required": [key]}
        other = {"if": {"not": named}, "then": self._limited(model, own_keys(model), every)}
        made["allOf"] = [*made.get("allOf", []), *self._of_each(model), other]
        return made

    def _of_each(self, model: type[Strict]) -> Iterator[Json]:
        """Yield the keys that may stand beside each recipe: the model's and its parameters."""
        kind, key = RECIPE_KEYS[model]
        for name in self._recipes.names(kind):
            takes = self._recipes.parameters(kind, name)
            refused = {one for one in GENERATOR_KEYS if kind == "generator" and one not in takes}
            yield when({key: [name]}, self._only(model, own_keys(model) - refused, name))

    def _only(self, model: type[Strict], own: frozenset[str], name: str) -> Json:
        parameters = parameter_schemas(self.definitions, self._recipes, RECIPE_KEYS[model][0], name)
        return self._limited(
            model, own, {key: one for key, one in parameters.items() if key not in own_keys(model)}
        )

    def _limited(self, model: type[Strict], own: frozenset[str], parameters: Json) -> Json:
        """Return the rule that an object has no keys but these, with the schemas of the parameters."""
        keys: Json = {"enum": sorted(own)}
        if own == own_keys(model):
            keys = self.definitions.refer(f"{model.__name__}Keys", lambda: {"enum": sorted(own)})
        others = {"enum": sorted(parameters)}
        if not parameters:
            return {"propertyNames": keys}
        return {"propertyNames": {"anyOf": [keys, others]}, "properties": parameters}


def _by_name(one: Json) -> Json:
    return {
        "type": "object",
        "additionalProperties": one,
        "propertyNames": {"pattern": NAME.schema["pattern"]},
    }


def _lines(level: Json) -> Json:
    return {"type": "array", "items": {"type": "object", "minProperties": 1, "additionalProperties": level}}


def _whole() -> Json:
    """Return the rules for keys of a file that extends no other."""
    return {
        "path": {"properties": {"delay": {"required": ["down", "up"]}}},
        "parts": {"minProperties": 1},
        "stop": at_least_one("after", "when"),
    }


def _document(definitions: Definitions, root: Json) -> Json:
    return {"$schema": DRAFT, **root, "$defs": dict(sorted(definitions.schemas.items()))}


def experiment_schema(recipes: Recipes, outputs: Outputs) -> Json:
    """Return the schema of experiments/NAME.yaml."""
    return ExperimentSchema(recipes, outputs).document()


def fragment_schema() -> Json:
    """Return the schema of experiments/fragments/NAME.yaml, a part of that of experiments."""
    return {"$schema": DRAFT, "$ref": "experiment.json#/$defs/Fragment"}


def testbed_schema() -> Json:
    """Return the schema of hosts/NAME.yaml."""
    made = _schema(Testbed)
    made["properties"]["hosts"]["minProperties"] = 1
    return made


def study_schema() -> Json:
    """Return the schema of experiments/studies/NAME.yaml."""
    return _schema(StudyReport)


def config_schema() -> Json:
    """Return the schema of config.yaml."""
    return _schema(Config)


def _schema(model: type[Strict]) -> Json:
    definitions = Definitions({("", "settings"): lambda *_: {"$ref": "experiment.json#/$defs/Settings"}})
    return _document(definitions, definitions.object(model))
