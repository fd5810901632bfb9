"""Editor schemas and reference pages: current, complete, and never stricter than the loader."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from samovar.errors import DefinitionError
from samovar.experiment import (
    Config,
    LoadOptions,
    Testbed,
    load_config,
    load_experiment,
    load_testbed,
    package_outputs,
)
from samovar.experiment.checks.check_values import check_site
from samovar.experiment.keys import keys_of
from samovar.experiment.yaml_tree import parse_yaml, plain
from samovar.recipes import Catalogue
from samovar.schema import stale
from samovar.schema.editor_schemas import ExperimentSchema, model_document
from samovar.schema.generated_files import schemas
from samovar.schema.reference_pages import ROOTS, Page, models_below
from samovar.schema.schema_from_keys import Definitions, SchemaError
from samovar.schema.schema_from_recipes import Recipes, parameter_schema
from tests.unit.experiment import test_load_errors as pinned

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
RECIPES = Recipes.of(CATALOGUE)
OUTPUTS = package_outputs()
SCHEMAS = schemas(RECIPES, OUTPUTS)
KINDS = {
    "experiments": "experiment",
    "experiments/fragments": "fragment",
    "experiments/studies": "study",
    "hosts": "testbed",
}
SHIPPED = [(path, kind) for folder, kind in KINDS.items() for path in sorted((ROOT / folder).glob("*.yaml"))]
SHIPPED += [(ROOT / "config.yaml", "config")]

# Types of plain scalars in the core schema of YAML 1.2, by which editors read a file.
CORE: list[tuple[str, Callable[[str], object]]] = [
    (r"~|null|Null|NULL|", lambda _: None),
    (r"true|True|TRUE", lambda _: True),
    (r"false|False|FALSE", lambda _: False),
    (r"[-+]?[0-9]+", int),
    (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", float),
]


def scalar_value(text: str) -> object:
    """Return the value that an editor reads from a plain scalar."""
    return next((read(text) for pattern, read in CORE if re.fullmatch(pattern, text)), text)


def read_as_editor(text: str) -> Any:
    """Read a file as an editor does; raises ValueError if the editor's YAML parser would report an error."""
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        return _read(node) if node is not None else None
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(str(error)) from error


def _read(node: yaml.Node) -> object:
    if not node.tag.startswith("tag:yaml.org,2002:") or "python" in node.tag:
        raise ValueError(f"tag {node.tag}")
    if isinstance(node, yaml.SequenceNode):
        return [_read(item) for item in node.value]
    if isinstance(node, yaml.ScalarNode):
        return node.value if node.style else scalar_value(node.value)
    keys = [key.value for key, _ in node.value]
    if len({str(key) for key in keys}) < len(keys) or not all(isinstance(key, str) for key in keys):
        raise ValueError("a duplicate key, or a key that is not text")
    return {key.value: _read(value) for key, value in node.value}


REGISTRY: Registry[Any] = Registry().with_resource(
    "experiment.json", DRAFT202012.create_resource(SCHEMAS["experiment"])
)
"""Schemas to which others refer by file name."""


@cache
def validator(kind: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[kind], registry=REGISTRY)


def errors_of(schema: Draft202012Validator, tree: Any) -> list[str]:
    return [
        f"{'/'.join(map(str, error.absolute_path))}: {error.message}" for error in schema.iter_errors(tree)
    ]


def test_generated_files_are_current() -> None:
    old = [str(path) for path in stale(ROOT)]
    assert not old, f"{', '.join(old)}: differ from the types and recipes; regenerate them with: fab schema"


def test_generated_schemas_are_deterministic() -> None:
    assert repr(schemas(Recipes.of(CATALOGUE), OUTPUTS)) == repr(SCHEMAS)


@pytest.mark.parametrize("kind", SCHEMAS)
def test_a_schema_is_valid_in_draft_2020_12_and_in_draft_7(kind: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[kind])
    Draft7Validator.check_schema(SCHEMAS[kind])
    assert not keywords(SCHEMAS[kind]) & {
        "prefixItems",
        "unevaluatedProperties",
        "dependentRequired",
        "minContains",
    }


def keywords(schema: Any) -> set[str]:
    """Return all keys of a schema, at any depth."""
    below = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    own = set(schema) if isinstance(schema, dict) else set()
    return own.union(*(keywords(one) for one in below))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_reference_in_a_schema_is_defined(kind: str) -> None:
    named = set(re.findall(r"'\$ref': '#/\$defs/([^']+)'", repr(SCHEMAS[kind])))
    assert named <= SCHEMAS[kind].get("$defs", {}).keys()


@pytest.mark.parametrize(("path", "kind"), SHIPPED, ids=lambda one: getattr(one, "stem", one))
def test_a_shipped_file_is_valid(path: Path, kind: str) -> None:
    assert errors_of(validator(kind), read_as_editor(path.read_text(encoding="utf-8"))) == []


def examples() -> Iterator[object]:
    fence = re.compile(r"^```\w*\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
    kinds = {
        "experiment:": "experiment",
        "# experiments/studies/": "study",
        "# experiments/": "experiment",
        "testbed:": "testbed",
    }
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for index, text in enumerate(fence.findall(page.read_text(encoding="utf-8"))):
            kind = next((kind for start, kind in kinds.items() if text.startswith(start)), None)
            if kind is not None:
                yield pytest.param(text, kind, id=f"{page.stem}-{index}")


@pytest.mark.parametrize(("text", "kind"), list(examples()))
def test_an_example_of_the_documentation_is_valid(text: str, kind: str) -> None:
    assert errors_of(validator(kind), read_as_editor(text)) == []


# Every number and word may also be quoted: the loader reads text.


def with_quoted_values(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: with_quoted_values(value) for key, value in tree.items()}
    return [with_quoted_values(one) for one in tree] if isinstance(tree, list) else str(tree)


@pytest.mark.parametrize(("path", "kind"), SHIPPED, ids=lambda one: getattr(one, "stem", one))
def test_a_shipped_file_with_all_values_quoted_is_valid(path: Path, kind: str) -> None:
    assert (
        errors_of(validator(kind), with_quoted_values(read_as_editor(path.read_text(encoding="utf-8")))) == []
    )


# Errors that test_load_errors.py pins: the schema finds all of them except those listed in test_schema.yaml.

CASES: list[Mapping[str, Any]] = pinned.CASES
NOT_FOUND: Mapping[str, list[str]] = yaml.safe_load(
    Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
)
SMALL = Recipes(pinned.Recipes(), ("linux", "freebsd"))
SMALL_SCHEMA = ExperimentSchema(SMALL, OUTPUTS).document()
OF_EXPERIMENT = Draft202012Validator(SMALL_SCHEMA)
OF_TESTBED = Draft202012Validator(
    model_document(Testbed),
    registry=Registry().with_resource("experiment.json", DRAFT202012.create_resource(SMALL_SCHEMA)),
)


def is_found(case: Mapping[str, Any]) -> bool:
    """Return whether the schema finds a pinned error."""
    try:
        experiment = read_as_editor(pinned.apply_changes(pinned.EXPERIMENT, case.get("experiment", {})))
        testbed = read_as_editor(pinned.apply_changes(pinned.TESTBED, case.get("testbed", {})))
    except ValueError:
        return True
    return not (OF_EXPERIMENT.is_valid(experiment) and OF_TESTBED.is_valid(testbed))


@cache
def found_cases() -> dict[str, bool]:
    """Return whether the schema finds each pinned error."""
    return {str(case["error"]): is_found(case) for case in CASES}


def test_the_files_into_which_errors_are_inserted_are_valid() -> None:
    assert errors_of(OF_EXPERIMENT, read_as_editor(pinned.EXPERIMENT)) == []
    assert errors_of(OF_TESTBED, read_as_editor(pinned.TESTBED)) == []


def test_each_pinned_error_is_found_by_the_schema_or_listed_with_a_reason() -> None:
    listed = {mistake for mistakes in NOT_FOUND.values() for mistake in mistakes}
    found = found_cases()
    missed = sorted(name for name, known in found.items() if not known and name not in listed)
    assert not missed, f"neither refused by the schema nor listed in {Path(__file__).stem}.yaml: {missed}"
    assert not [name for name in listed if found.get(name)], "listed although the schema finds the error"


# The schema refuses nothing that the loader accepts.

WORDS = [
    "",
    "no",
    "on",
    "1",
    "0",
    "-1",
    "010",
    "1e6",
    "10:20",
    "0.5",
    "50KB",
    "5ms",
    "0s",
    "2%",
    "1500B",
    "46",
    "EF",
]
WORDS += [
    "1 BDP",
    "BDP + 1",
    "2 * (",
    "20 RTT",
    "40mbit",
    "10packets",
    "2/s",
    "down",
    "cubic",
    "sender",
    "senders",
]
WORDS += [
    "bulk",
    "path.rate",
    "traffic.bulk.size",
    "RTT",
    "codel",
    "iperf3",
    "9" * 40,
    "x" * 70,
    "€",
    "a b",
    "é",
    "tcp",
]
KEYS = [
    "down",
    "up",
    "label",
    "levels",
    "from",
    "to",
    "step",
    "points",
    "scale",
    "uniform",
    "poisson",
    "cc",
    "mtu",
]
KEYS += [
    "path.rate",
    "path.rtt",
    "target",
    "interval",
    "recipe",
    "parameter",
    "at",
    "sets",
    "use",
    "rtt",
    "delay",
    "loss",
]
KEYS += [
    "size",
    "duration",
    "until",
    "count",
    "every",
    "dscp",
    "length",
    "tcp.sack",
    "x",
    "sender",
    "src",
    "title",
]
TEXTS = st.sampled_from(WORDS) | st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), max_size=6)
JUNK = st.recursive(
    TEXTS,
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, inner, max_size=2)
    ),
    max_leaves=4,
)
# YAML 1.2 does not read these words as text: null, true and false. As texts, they must be quoted.
NOT_WORDS = re.compile(r"(?:|~|[Nn]ull|NULL|[Tt]rue|TRUE|[Ff]alse|FALSE)")


def places_of_values(node: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in children:
        yield (*above, step)
        yield from places_of_values(child, (*above, step))


def read_as_loader(text: str) -> Any:
    """Return the tree of a file with every scalar as text, as the loader reads it."""
    return plain(parse_yaml(text, "")[0])


# Fragments are not varied, because the loader reads only the fragments that an experiment uses.
VARIED = [
    (path, kind, read_as_loader(path.read_text(encoding="utf-8")))
    for path, kind in SHIPPED
    if kind != "fragment"
]
PLACES = [(path, kind, tree, place) for path, kind, tree in VARIED for place in places_of_values(tree)]


@st.composite
def variations(draw: st.DrawFn) -> tuple[Path, str, Any]:
    """Draw a shipped file in which one value is replaced, one key is added or one key is removed."""
    path, kind, tree, place = draw(st.sampled_from(PLACES))
    tree = deepcopy(tree)
    node = tree
    for step in place[:-1]:
        node = node[step]
    change = draw(st.sampled_from(["replace", "replace", "add", "drop"]))
    if change == "drop":
        del node[place[-1]]
    elif change == "add" and isinstance(node, dict):
        node[draw(st.sampled_from(KEYS))] = draw(JUNK)
    else:
        node[place[-1]] = draw(JUNK)
    return path, kind, tree


def values_of_core_schema(tree: Any) -> Any:
    """Return a tree as an editor reads it if all texts that match NOT_WORDS are quoted."""
    if isinstance(tree, dict):
        return {key: values_of_core_schema(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [values_of_core_schema(one) for one in tree]
    return tree if NOT_WORDS.fullmatch(tree) else scalar_value(tree)


CONFIG = load_config(ROOT / "config.yaml")
TESTBEDS = [load_testbed(path) for path in sorted((ROOT / "hosts").glob("*.yaml"))]


def load(path: Path, kind: str, tree: Any, folder: Path) -> None:
    """Load a changed file among the other shipped files."""
    changed = folder / path.relative_to(ROOT)
    changed.write_text(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False), encoding="utf-8")
    if kind == "experiment":
        load_experiment(changed, CATALOGUE, None, LoadOptions(config=CONFIG, outputs=OUTPUTS))
    elif kind == "testbed":
        _check([load_testbed(changed)], None)
    else:
        _check(TESTBEDS, load_config(changed))


def _check(testbeds: list[Testbed], config: Config | None) -> None:
    problems = [one for testbed in testbeds for one in check_site(testbed, config, CATALOGUE)]
    if problems:
        raise DefinitionError(problems)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(variations())
def test_the_loader_refuses_every_file_that_the_schema_refuses(variation: tuple[Path, str, Any]) -> None:
    path, kind, tree = variation
    found = errors_of(validator(kind), values_of_core_schema(tree)) + errors_of(validator(kind), tree)
    if not found:
        return
    with TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("experiments", "hosts"):
            shutil.copytree(ROOT / part, folder / part)
        with pytest.raises(DefinitionError):
            load(path, kind, tree, folder)
            print(found)


# Reference pages.


@pytest.mark.parametrize("page", ROOTS)
def test_every_key_of_a_file_is_in_its_reference_page(page: str) -> None:
    pages = {page, "config"}  # config.md has the thresholds of the verdict
    text = "".join((ROOT / "docs" / "reference" / f"{one}.md").read_text(encoding="utf-8") for one in pages)
    for name, model in models_below(ROOTS[page]):
        lines = [key for key in keys_of(model) if f"\n- `{key}` (" not in text]
        assert not lines, f"{name}: no line for {lines}"


@pytest.mark.parametrize("kind", ["setting", "aqm", "generator", "logger"])
def test_the_reference_has_a_section_with_the_parameters_of_every_recipe(kind: str) -> None:
    pages = (ROOT / "docs" / "reference").glob("recipe-*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    for name in (one for one in RECIPES.names(kind) if one not in RECIPES.quantities):
        section = text.split(f"### {kind} `{name}`\n")[1].split("\n##")[0]
        assert RECIPES.summary(kind, name) in section
        for parameter, known in RECIPES.parameters(kind, name).items():
            (line,) = (one for one in section.splitlines() if f"`{parameter}` (" in one)
            one = next(iter(known.values()))
            assert "): as for [" in line or (one.description in line and (one.default or "") in line), line


@pytest.mark.parametrize("kind", ["step", "fact"])
def test_the_reference_has_a_line_with_the_summary_of_every_step_and_fact(kind: str) -> None:
    page = (ROOT / "docs" / "reference" / "recipe-loggers.md").read_text(encoding="utf-8")
    text = page.partition("## Steps\n")[2]
    for name in RECIPES.names(kind):
        (line,) = (line for line in text.splitlines() if line.startswith(f"- `{name}`: "))
        assert RECIPES.summary(kind, name) in line


def test_text_around_generated_tables_is_kept() -> None:
    text = "# Page\n\nBefore.\n\n<!-- fab schema: keys of Stop -->\nold\n<!-- end -->\n\nAfter.\n"
    made = Page(text, ROOTS["experiment"], RECIPES, OUTPUTS).written()
    assert made.startswith("# Page\n\nBefore.\n\n")
    assert made.endswith("\n\nAfter.\n")
    assert "- `after` (" in made
    assert "old" not in made


def test_an_unknown_generated_block_is_refused_with_the_known_blocks() -> None:
    page = Page("<!-- fab schema: keyz -->\n<!-- end -->\n", None, RECIPES, OUTPUTS)
    with pytest.raises(SchemaError, match="no generated block 'keyz'; known: keys, other keys, factors"):
        page.written()


# Completion in editors.


def names(kind: str) -> set[str]:
    return {name for system in ("linux", "freebsd") for name in CATALOGUE.names(kind, system)}


def test_names_of_recipes_are_completed_with_their_summaries() -> None:
    defs = SCHEMAS["experiment"]["$defs"]
    for model, key, kind in (
        ("FlowChange", "generator", "generator"),
        ("LoggerChange", "logger", "logger"),
        ("Path", "aqm", "aqm"),
    ):
        value = defs[model]["properties"][key]
        value = defs[value.get("anyOf", [value])[0]["$ref"].removeprefix("#/$defs/")]
        assert set(value["enum"]) == names(kind) | (RECIPES.quantities.keys() if kind == "logger" else set())
        assert len(value["enumDescriptions"]) == len(value["enum"])
        assert all(value["enumDescriptions"])


def test_a_parameter_of_a_generator_is_accepted_only_in_a_flow_with_this_generator() -> None:
    flow = {"flow": "a", "from": "sender", "to": "receiver"}
    base = {"experiment": "x", "testbed": "lab", "duration": "5s"}
    for generator, key, valid in (
        ("scp", "length", False),
        ("iperf3", "length", True),
        ("iperf3", "lenght", False),
    ):
        tree = {**base, "traffic": [{**flow, "generator": generator, key: "8KB"}]}
        assert validator("experiment").is_valid(tree) == valid, generator


def test_figures_and_tables_are_completed_with_their_titles_and_options() -> None:
    for kind in ("figure", "table"):
        name, entry = SCHEMAS["experiment"]["$defs"][f"{kind}s"]["items"]["anyOf"]
        name = SCHEMAS["experiment"]["$defs"][name["$ref"].removeprefix("#/$defs/")]
        assert dict(zip(name["enum"], name["enumDescriptions"], strict=True)) == {
            one: output.what for one, output in OUTPUTS.kinds[kind].items()
        }
        assert all(name["enumDescriptions"])
        options = {option for output in OUTPUTS.kinds[kind].values() for option in output.options}
        assert entry["properties"].keys() == {kind, "part", "trial", "title", *options}
    experiment = {"experiment": "x", "testbed": "lab", "traffic": []}
    assert validator("experiment").is_valid({**experiment, "figures": ["rtt-cdf"]})
    assert not validator("experiment").is_valid({**experiment, "figures": ["rtt-cfd"]})


def test_a_number_in_place_of_a_quantity_causes_the_same_message_as_an_invalid_text() -> None:
    """A language server shows `errorMessage` in place of `Incorrect type` only if `type` is a list."""
    for name in (
        "rate-or-formula",
        "size-or-formula",
        "time-or-formula",
        "share-or-formula",
        "buffer-or-formula",
    ):
        form = SCHEMAS["experiment"]["$defs"][name]
        assert form["type"] == ["string"]
        assert form["errorMessage"].startswith("expected ")


def test_metrics_are_completed_with_their_descriptions() -> None:
    metric = SCHEMAS["experiment"]["$defs"]["metric"]
    assert metric["enum"] == list(OUTPUTS.metrics)
    assert all(
        one.unit in words
        for one, words in zip(OUTPUTS.metrics.values(), metric["enumDescriptions"], strict=True)
    )


FILLED = {"algorithm", "buffer_bytes", "buffer_kib", "interfaces", "keys", "link", "mtu_bytes", "parameters"}
FILLED |= {"peers", "size_bytes", "txd"}
"""Parameters of setting recipes that samovar fills in, so that they are not keys of `settings`."""


def test_parameters_of_settings_of_both_systems_are_keys_with_the_descriptions_of_a_system() -> None:
    assert SCHEMAS["config"]["properties"]["settings"]["$ref"] == "experiment.json#/$defs/Settings"
    known = SCHEMAS["experiment"]["$defs"]["Settings"]["properties"]
    descriptions: dict[str, list[str]] = {}
    for system in ("linux", "freebsd"):
        for recipe in CATALOGUE.names("setting", system) - {"bottleneck"}:
            for parameter, info in (CATALOGUE.parameters("setting", recipe, system) or {}).items():
                if parameter not in FILLED:
                    descriptions.setdefault(f"{recipe}.{parameter}", []).append(info.description)
    assert descriptions.keys() | {"cc", "rwnd", "mtu", "txd"} <= known.keys()
    for key, texts in descriptions.items():
        assert any(text.lower()[:20] in known[key]["description"].lower() for text in texts), key


def schemas_within(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all schemas within it, except conditions, which only repeat others."""
    inner = ("if", "not", "allOf", "enum", "examples")
    if isinstance(schema, dict):
        yield schema
        schema = [value for key, value in schema.items() if key not in inner]
    for one in schema if isinstance(schema, list) else ():
        yield from schemas_within(one)


@pytest.mark.parametrize("kind", [kind for kind in SCHEMAS if kind != "journal"])
def test_every_key_but_those_of_a_range_has_a_description_at_any_depth(kind: str) -> None:
    properties = [
        (key, value)
        for one in schemas_within(SCHEMAS[kind])
        for group in ("properties", "patternProperties")
        if one.get("required") != ["from", "to", "step"]
        for key, value in one.get(group, {}).items()
    ]
    assert [
        key for key, value in properties if isinstance(value, dict) and not is_described(kind, value)
    ] == []


def is_described(kind: str, value: Mapping[str, Any]) -> bool:
    """Return whether a key has a description, of its own or in the schema that it refers to."""
    shared = SCHEMAS[kind].get("$defs", {}).get(value.get("$ref", "").removeprefix("#/$defs/"), {})
    options = [value, shared, *shared.get("anyOf", [])]
    return any("description" in one or ("$ref" in one and one is not value) for one in options)


@pytest.mark.parametrize("kind", ["setting", "aqm", "generator", "logger"])
def test_every_parameter_of_a_recipe_has_a_description_and_a_type_or_choices(kind: str) -> None:
    for recipe in RECIPES.names(kind):
        for name, found in RECIPES.parameters(kind, recipe).items():
            infos = list(found.values())
            one = parameter_schema(Definitions({}), infos)
            assert len(one["description"]) > 5, (recipe, name)
            assert "Type: " in one["description"] or infos[0].choices, (recipe, name)
