"""What may vary, as JSON Schema needs it: every name or pattern of names, its values, what they mean."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from samovar.experiment.keys import DEVICE_PARAMETERS as DEVICES
from samovar.experiment.keys import (
    EACH,
    OF_ARRIVALS,
    OF_FLOW,
    OF_LOGGER,
    OF_PATH,
    OF_STOP,
    RANDOM,
    SETTINGS,
    Arrivals,
    Flow,
    Form,
    NetworkPath,
    Stop,
    form_of,
    notation,
    own_keys,
)
from samovar.schema import recipe_schema as of_recipes
from samovar.schema.json_schema import Json
from samovar.schema.model_schema import Definitions, own_fields, told
from samovar.schema.recipe_schema import Recipes, Taken

HOST, WAYS, BOTH_WAYS, PLAIN = "per host", "per direction", "both directions", "plain"
LAW = "drawn"
LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
NO_ARRIVALS = r"(?!.*\.arrivals\.[a-z]+$)"
"""Before a label: that what follows is no key of a flow's arrivals, since labels may hold dots."""
HOST_SETTINGS: dict[str, tuple[Form, str]] = {
    "cc": (notation.ALGORITHM, "Congestion control of hosts that send."),
    "rwnd": (notation.SIZE_OR_FORMULA, "Largest window that hosts that receive announce, such as 200KB."),
    "mtu": (notation.MTU, "MTU in bytes of every testbed interface, such as 1500."),
    "txd": (notation.DESCRIPTORS, "Transmit descriptors of hosts that send."),
}
assert HOST_SETTINGS.keys() == SETTINGS.keys()
DURATION = "How long flows last that have no end of their own, such as 90s."
SCALAR: Json = {"type": ["string", "number", "boolean"]}


class Target(NamedTuple):
    """What a level may set: its name or a pattern of names, its values, and what else may stand for one."""

    name: str
    pattern: bool
    value: Json
    takes: str
    told: Json
    form: Form | None = None


def targets(definitions: Definitions, recipes: Recipes) -> Iterator[Target]:
    """Yield everything that a level may set, patterns after the names that they also match."""
    for key, (form, words) in HOST_SETTINGS.items():
        yield Target(key, False, definitions.form(form), HOST, {"description": words}, form)
    time = notation.TIME_OR_FORMULA
    yield Target("duration", False, definitions.form(time), PLAIN, {"description": DURATION}, time)
    yield from _of_path(definitions, recipes)
    yield from _of_settings(definitions, recipes)
    yield from _of_loggers(definitions, recipes)
    yield from _of_stop(definitions)
    yield from _of_flows(definitions, recipes)
    anything = {"description": "A parameter of the congestion control's kernel module."}
    yield Target(r"^cc\.[^.]+$", True, SCALAR, HOST, anything)


def _of_path(definitions: Definitions, recipes: Recipes) -> Iterator[Target]:
    for key, info in own_fields(NetworkPath):
        form = form_of(info)
        if key in OF_PATH and form is not None:
            takes = {"": PLAIN, EACH: BOTH_WAYS}.get(form.ways, WAYS)
            value = of_recipes.choice(recipes, "aqm") if key == "aqm" else definitions.form(form)
            yield Target(f"path.{key}", False, value, takes, told(info, form), form)
    devices = {key: of_recipes.parameter(definitions, [Taken("", one)]) for key, one in DEVICES.items()}
    for key, one in {**of_recipes.union(definitions, recipes, "aqm"), **devices}.items():
        if key not in own_keys(NetworkPath):
            yield Target(f"path.{key}", False, *_split(one, WAYS))


def _of_settings(definitions: Definitions, recipes: Recipes) -> Iterator[Target]:
    for key, taken in of_recipes.setting_keys(recipes):
        having = recipes.having("setting", key.partition(".")[0])
        one = of_recipes.parameter(definitions, taken, having)
        yield Target(key, False, *_split(one, HOST))


def _of_loggers(definitions: Definitions, recipes: Recipes) -> Iterator[Target]:
    for name in recipes.names("logger"):
        for key in OF_LOGGER:
            words = {"description": f"Time between samples of {name}, such as 10ms."}
            value = definitions.form(notation.DURATION)
            yield Target(f"loggers.{name}.{key}", False, value, PLAIN, words, notation.DURATION)
        for key, one in of_recipes.parameters(definitions, recipes, "logger", name).items():
            yield Target(f"loggers.{name}.{key}", False, *_split(one, PLAIN))


def _of_stop(definitions: Definitions) -> Iterator[Target]:
    for key, info in own_fields(Stop):
        form = form_of(info)
        assert form is not None and key in OF_STOP
        yield Target(f"stop.{key}", False, definitions.form(form), PLAIN, told(info, form), form)


def _of_flows(definitions: Definitions, recipes: Recipes) -> Iterator[Target]:
    fields = dict(own_fields(Flow))
    for key in OF_FLOW:
        form = form_of(fields[key])
        assert form is not None
        value = of_recipes.choice(recipes, "generator") if key == "generator" else definitions.form(form)
        label = f"{NO_ARRIVALS}{LABEL}" if key in OF_ARRIVALS else LABEL
        takes = LAW if key in RANDOM else PLAIN
        yield Target(rf"^traffic\.{label}\.{key}$", True, value, takes, told(fields[key], form), form)
    for key, info in own_fields(Arrivals):
        form = form_of(info)
        assert form is not None and key in OF_ARRIVALS
        takes, name = LAW if key in RANDOM else PLAIN, rf"^traffic\.{LABEL}\.arrivals\.{key}$"
        yield Target(name, True, definitions.form(form), takes, told(info, form), form)
    for key, one in of_recipes.union(definitions, recipes, "generator").items():
        if key not in own_keys(Flow):
            yield Target(rf"^traffic\.{LABEL}\.{key}$", True, *_split(one, PLAIN))


def _split(one: Json, takes: str) -> tuple[Json, str, Json]:
    """Return a property's value, what may stand for it, and what is said of it."""
    said = {key: text for key, text in one.items() if key in ("description", "markdownDescription")}
    return {key: part for key, part in one.items() if key not in said}, takes, said
