"""JSON Schemas for editors, one per kind of file: experiments, fragments, testbeds, studies, config.yaml.

The schemas are made from the keys in samovar/experiment/keys/: editors complete a new key without a change
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import NamedTuple

from samovar.experiment import COMMON_OPTIONS, GENERATOR_KEYS, Outputs, keys, merge
from samovar.experiment import value_types as types
from samovar.schema.schema_from_keys import (
    DIRECTIONS,
    Definitions,
    Json,
    any_of,
    by_name,
    closed,
    directions,
    random,
    several,
    slug,
)
from samovar.schema.schema_from_recipes import (
    Recipes,
    parameter_schema,
    parameter_schemas,
    parameters_of_kind,
    recipe_choice,
)

RECIPE_KEYS: Mapping[type[keys.Strict], str] = {
    keys.Flow: "generator",
    keys.Logger: "logger",
    keys.NetworkPath: "aqm",
}
"""Models that name a recipe and accept its parameters as keys, with the key that names the recipe.

The key is also the kind of the recipe.
"""
SCALAR: Json = {"type": ["string", "number", "boolean"]}
LABELS: Json = any_of(SCALAR, several(SCALAR))
LEVEL_LABEL: Json = {
    "type": ["string", "number"],
    "pattern": r"\S",
    "description": "Label of the level in tables, ids and figures.",
}
AN_END: Json = {"type": ["number", "string"], "pattern": "^[0-9]"}
LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NO_ARRIVALS = r"(?!.*\.arrivals\.[a-z]+$)"
"""Prefix of the pattern of a flow's label. Without it, traffic.web.arrivals.count would also match as key
`count` of a flow `web.arrivals`, because labels may contain dots."""
FREE_NAME = rf"^(?!(?:{'|'.join(keys.PLAIN_FACTORS)})$)[^.]+$"
"""Pattern of invented names of factors, such as `home`, which are not targets."""


class LevelTarget(NamedTuple):
    """A target of levels.

    `name` is its name or a pattern of names (^…), `value` is the schema of its values, and `form` is their
    form.
    """

    name: str
    value: Json
    form: types.Form
    description: str


class ExperimentSchema:
    """Builds the schema of experiments, and of the fragments that they use."""

    def __init__(self, recipes: Recipes, outputs: Outputs) -> None:
        self._recipes, self._manifest = recipes, outputs
        self.definitions = Definitions(self._special())
        self._refer = self.definitions.refer
        self._label = self._refer("label", lambda: LEVEL_LABEL)
        self._targets = list(self._level_targets())
        self._explicit = self.definitions.value(keys.FactorKeys)

    def _special(self) -> dict[tuple[str, str], Callable[[], Json]]:
        return {
            ("", "factors"): lambda: self._refer("Factors", self._factors),
            ("", "settings"): lambda: self._refer("Settings", self._settings),
            ("", "exclude"): lambda: _lines(LABELS),
            ("", "include"): lambda: _lines(any_of(SCALAR, {"type": "object", "minProperties": 1})),
            ("", "traffic"): lambda: self._entries(keys.Flow, "Changes of flows, by label."),
            ("", "loggers"): lambda: self._entries(keys.Logger, "Changes of loggers, by recipe."),
            ("", "path"): lambda: self._refer("Path", lambda: self._with_parameters(keys.NetworkPath)),
            ("Flow", "generator"): lambda: recipe_choice(self.definitions, self._recipes, "generator"),
            ("Logger", "logger"): lambda: recipe_choice(self.definitions, self._recipes, "logger"),
            ("Expect", "metric"): lambda: self._refer("metric", self._metric),
            ("NetworkPath", "aqm"): self._aqm,
            ("Expect", "where"): lambda: {"type": "object", "additionalProperties": LABELS},
            ("Experiment", "parts"): lambda: self._layers("Part", (*merge.PART_KEYS, "use")),
            ("Experiment", "profiles"): lambda: self._layers("Profile", (*merge.PROFILE_KEYS, "use")),
            ("Experiment", "fragments"): lambda: self._layers("Fragment", merge.FRAGMENT_KEYS),
            ("Experiment", "figures"): lambda: self._refer("figures", lambda: self._outputs("figure")),
            ("Experiment", "tables"): lambda: self._refer("tables", lambda: self._outputs("table")),
            ("FactorKeys", "levels"): self._any_levels,
            ("FactorKeys", "sets"): self._names_of_targets,
        }

    def document(self) -> Json:
        """Return the schema of a whole file."""
        root = self._layer(tuple(keys.keys_of(keys.Experiment)))
        rule = {"if": {"not": {"required": ["extends"]}}, "then": {"required": ["testbed"]}}
        return self.definitions.document({**root, "required": ["experiment"], "allOf": [rule]})

    def _layers(self, name: str, properties: tuple[str, ...]) -> Json:
        return by_name(self._refer(name, lambda: self._layer(properties)), types.NAME)

    def _layer(self, names: tuple[str, ...]) -> Json:
        """Return the schema of some keys of an experiment, all of them optional."""
        known = {name: key for name, key in keys.keys_of(keys.Experiment).items() if name in names}
        return closed({name: self.definitions.property(keys.Experiment, known[name], True) for name in known})

    def _aqm(self) -> Json:
        one = recipe_choice(self.definitions, self._recipes, "aqm")
        return any_of(one, self._refer("aqm-per-direction", lambda: directions(one)))

    def _metric(self) -> Json:
        metrics = self._manifest.metrics
        described = [f"{one.what} ({one.unit})" for one in metrics.values()]
        return {"enum": list(metrics), "enumDescriptions": described}

    def _outputs(self, kind: str) -> Json:
        """Return the schema of figures or tables: names, or mappings with options.

        Factors are accepted as options, too.
        """
        known = self._manifest.kinds[kind]
        whats = [one.what for one in known.values()]
        names = {"enum": list(known), "enumDescriptions": whats, "description": f"Name of the {kind}."}
        name = self._refer(kind, lambda: names)
        own: dict[str, dict[str, list[str]]] = {}
        for one, output in known.items():
            for option, info in output.options.items():
                own.setdefault(option, {}).setdefault(info.what, []).append(one)
        options: Json = {
            option: {"description": " ".join(f"{', '.join(of)}: {what}" for what, of in texts.items())}
            for option, texts in own.items()
        }
        series = {"enum": list(self._manifest.series)}
        several_series = any_of(series, {"type": "array", "items": series})
        for option in own:
            if {one.options[option].type for one in known.values() if option in one.options} == {"series"}:
                options[option] |= several_series
        options |= {one: {**LABELS, "description": COMMON_OPTIONS[one]} for one in ("part", "trial")}
        options["title"] = {**SCALAR, "description": COMMON_OPTIONS["title"]}
        entry = {"type": "object", "properties": {kind: name, **options}, "required": [kind]}
        return {"type": "array", "items": any_of(name, entry)}

    # Objects that have the parameters of a recipe in addition to their own keys.

    def _entries(self, model: type[keys.Strict], words: str) -> Json:
        """Return the schema of flows or loggers: a list of entries, or a mapping from names to changes.

        The changes apply to entries of a weaker layer.
        """
        required = [name for name, key in keys.keys_of(model).items() if key.field.is_required()]
        change = self._refer(f"{model.__name__}Change", lambda: self._with_parameters(model))
        whole = self._refer(model.__name__, lambda: {"allOf": [change, {"required": required}]})
        return any_of(
            {"type": "array", "items": whole}, {**by_name(change, types.NAME), "description": words}
        )

    def _with_parameters(self, model: type[keys.Strict]) -> Json:
        """Return the JSON Schema of a model that names a recipe and accepts its parameters as keys."""
        kind, known_keys = RECIPE_KEYS[model], keys.keys_of(model).keys()
        made = self.definitions.object(model, partial=True)
        del made["additionalProperties"]
        every = parameters_of_kind(self.definitions, self._recipes, kind)
        every |= self._device_parameters() if model is keys.NetworkPath else {}
        named = {"properties": {kind: {"enum": self._recipes.names(kind)}}, "required": [kind]}
        rules = [{"if": {"not": named}, "then": self._limited(known_keys, every)}]
        for name in self._recipes.names(kind):
            known = parameter_schemas(self.definitions, self._recipes, kind, name)
            refused = {one for one in GENERATOR_KEYS if kind == "generator" and one not in known}
            others = {one: schema for one, schema in known.items() if one not in known_keys}
            chosen = {"properties": {kind: {"const": name}}, "required": [kind]}
            rules.append({"if": chosen, "then": self._limited(known_keys - refused, others)})
        return {**made, "allOf": [*made.get("allOf", []), *rules]}

    def _limited(self, own: Set[str], parameters: Json) -> Json:
        """Return the rule that an object has only keys in `own` and `parameters` (with their schemas)."""
        return {"propertyNames": {"enum": sorted({*own, *parameters})}, "properties": parameters}

    def _device_parameters(self) -> Json:
        """Return the parameters of devices that a path may set."""
        known = keys.DEVICE_PARAMETERS.items()
        return {name: parameter_schema(self.definitions, [one]) for name, one in known}

    # Factors: every target that a level may set, with all forms in which a level may be written.

    def _level_targets(self) -> Iterator[LevelTarget]:
        """Yield all targets of levels. A pattern comes after all names that it also matches."""
        yield from self._keys("")
        yield from self._keys("path")
        of_aqms = parameters_of_kind(self.definitions, self._recipes, "aqm")
        for key, one in (of_aqms | self._device_parameters()).items():
            if key not in keys.keys_of(keys.NetworkPath):
                yield self._parameter(f"path.{key}", one, types.Form.ONE)
        for recipe in self._recipes.names("setting"):
            yield from self._parameters_of("setting", recipe, recipe, types.Form.PER_HOST)
        for logger in self._recipes.names("logger"):
            yield from self._keys(f"loggers.{logger}")
            yield from self._parameters_of("logger", logger, f"loggers.{logger}", types.Form.ONE)
        for owner in ("stop", "path.classes.CLASS", "traffic.FLOW", "traffic.FLOW.arrivals"):
            yield from self._keys(owner)
        for key, one in parameters_of_kind(self.definitions, self._recipes, "generator").items():
            if key not in keys.varied_keys("traffic.FLOW"):
                yield self._parameter(rf"^traffic\.{LABEL}\.{key}$", one, types.Form.ONE)
        words = "Parameter of the congestion control's kernel module."
        yield self._parameter(r"^cc\.[^.]+$", {**SCALAR, "description": words}, types.Form.PER_HOST)

    def _keys(self, owner: str) -> Iterator[LevelTarget]:
        """Yield targets for the keys of an owner, such as `path`, that a factor's levels may set.

        The names of the targets of `traffic.FLOW` (any flow) are patterns.
        """
        for name, key in keys.varied_keys(owner).items():
            if key.type is None:
                continue
            value = self.definitions.of_type(key.type)
            if name in ("aqm", "generator"):
                value = recipe_choice(self.definitions, self._recipes, name)
            target = f"{owner}.{name}" if owner else name
            if owner.startswith("traffic.FLOW"):
                dotted = owner == "traffic.FLOW" and name in keys.keys_of(keys.Arrivals)
                label = f"{NO_ARRIVALS}{LABEL}" if dotted else LABEL
                target = f"^{target}$".replace(".", r"\.").replace("FLOW", label)
            elif owner == "path.classes.CLASS":
                target = f"^{target}$".replace(".", r"\.").replace("CLASS", LABEL)
            yield LevelTarget(target, value, key.type.form, key.description)

    def _parameters_of(self, kind: str, recipe: str, owner: str, form: types.Form) -> Iterator[LevelTarget]:
        for key, infos in self._recipes.parameters(kind, recipe).items():
            yield self._parameter(f"{owner}.{key}", parameter_schema(self.definitions, infos.values()), form)

    def _parameter(self, name: str, one: Json, form: types.Form) -> LevelTarget:
        """Return the target for a recipe's parameter; its values refer to a shared schema."""
        shared = one if "$ref" in one else self._refer(slug(name.replace(LABEL, "FLOW")), lambda: one)
        return LevelTarget(name, {"$ref": shared["$ref"]}, form, one["description"])

    def _keyed(self, known: list[LevelTarget], make: Callable[[LevelTarget], Json]) -> Json:
        """Return the schema of an object with a property for each target; `make` builds each property."""
        names: Json = {one.name: {**make(one), "description": one.description} for one in known}
        patterns = {one.name: names.pop(one.name) for one in known if one.name.startswith("^")}
        return closed(names, patternProperties=patterns)

    def _settings(self) -> Json:
        """Return the schema of host settings: a value, or a value for each host or role."""
        return self._keyed([one for one in self._targets if one.form == types.Form.PER_HOST], self._value)

    def _factors(self) -> Json:
        """Return the schema of `factors`: targets with levels, and invented names with linked levels."""
        found = self._keyed(self._targets, self._factor)
        words = "Levels that set several keys: a list of mappings, each {key: value, ..., label: word}."
        linked = self._refer("LinkedLevels", lambda: _levels(self._linked_level()))
        free = any_of(linked, self._explicit, self._any_levels())
        found["patternProperties"][FREE_NAME] = {**free, "description": words}
        return {**found, "additionalProperties": any_of(self._explicit, self._any_levels())}

    def _names_of_targets(self) -> Json:
        """Return the schema of the targets that one factor sets together: one, or a list."""
        names = [one.name for one in self._targets if not one.name.startswith("^")]
        patterns = "|".join(one.name for one in self._targets if one.name.startswith("^"))
        one = self._refer("target", lambda: any_of({"enum": names}, {"type": "string", "pattern": patterns}))
        return any_of(one, several(one))

    def _any_levels(self) -> Json:
        """Return the schema of levels whose values have unknown types."""
        values = {"type": "object", "minProperties": 1, "additionalProperties": SCALAR}
        either = any_of(SCALAR, _levels(any_of(SCALAR, values)), _range(AN_END))
        words = {"description": "One level, a list of levels, or a range."}
        return self._refer("AnyLevels", lambda: {**either, **words})

    def _linked_level(self) -> Json:
        level = self._keyed(self._targets, self._value)
        level["properties"]["label"] = self._label
        expected = "expected a level such as {path.rate: 10Mbit, rwnd: 2 BDP, label: home}"
        needed = {"minProperties": 1, "if": {"required": ["label"]}, "then": {"minProperties": 2}}
        return {**level, **needed, "errorMessage": expected}

    def _factor(self, one: LevelTarget) -> Json:
        """Return the schema of a factor that sets a target: a level, a list, a range, or {levels: ...}."""

        def make() -> Json:
            labelled = closed({"value": one.value, "label": self._label}, required=["value", "label"])
            forms = self._forms(one)
            plain = forms[:1] if one.form != types.Form.BOTH_DIRECTIONS else ()
            ranges = [_range(value) for value in plain]
            return any_of(*plain, _levels(any_of(*forms, labelled)), *ranges, self._explicit)

        return self._refer(_name("factor", one), make)

    def _value(self, one: LevelTarget) -> Json:
        """Return the schema of a target's value: a single value, or a mapping by direction or host."""
        return self._refer(_name("value", one), lambda: any_of(*self._forms(one)))

    def _forms(self, one: LevelTarget) -> tuple[Json, ...]:
        """Return the schemas of a single value, and of a mapping by direction or host.

        The mapping may contain the key `label`.
        """
        value, label = one.value, self._label
        match one.form:
            case types.Form.ONE:
                return (value,)
            case types.Form.RANDOM:
                return value, random(value, label=label)
            case types.Form.BOTH_DIRECTIONS:
                return ({**directions(value, label=label), "required": list(DIRECTIONS)},)
            case types.Form.PER_DIRECTION:
                return value, directions(value, label=label)
        properties = {"down": False, "up": False, "label": label}
        return value, {**closed(properties, minProperties=1), "additionalProperties": value}


def _lines(level: Json) -> Json:
    return {"type": "array", "items": {"type": "object", "minProperties": 1, "additionalProperties": level}}


def _levels(level: Json) -> Json:
    return several(level, maxItems=keys.MOST_LEVELS, uniqueItems=True)


def _range(end: Json) -> Json:
    return closed(dict.fromkeys(keys.RANGE_KEYS, end), required=list(keys.RANGE_KEYS))


def _name(what: str, one: LevelTarget) -> str:
    """Return the name of the schema that all targets with these values in this form share."""
    reference = str(one.value["$ref"]).removeprefix("#/$defs/")
    return f"{what}-{reference}{'' if one.form == types.Form.ONE else f'-{slug(one.form.name.lower())}'}"


def model_document(model: type[keys.Strict]) -> Json:
    """Return the schema of a file that is one model: a testbed, a study or config.yaml."""
    definitions = Definitions({("", "settings"): lambda: {"$ref": "experiment.json#/$defs/Settings"}})
    return definitions.document(definitions.object(model))
