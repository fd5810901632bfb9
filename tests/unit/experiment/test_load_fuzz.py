"""Definition files with random changes are accepted, or refused with messages that have a place."""

import random
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.campaign.availability.requirements import host_needs
from samovar.campaign.availability.unsupported_paths import unsupported_paths
from samovar.cli.project import Project, Request
from samovar.errors import DefinitionError, PlanError
from samovar.experiment import load_experiment, load_testbed
from samovar.experiment.yaml_tree import parse_yaml, plain
from samovar.recipes import Catalogue

ROOT = Path(__file__).parents[3]
RECIPES = Catalogue(ROOT / "templates")
TESTBED = load_testbed(ROOT / "hosts" / "dumbbell.yaml")
STUDY = """\
experiment: study
testbed: dumbbell
path: {rate: {down: 40Mbit, up: 8Mbit}, delay: {down: 2ms, up: 1ms}, buffer: 1 BDP, loss: 1%, jitter: 1ms, aqm: codel,
       target: 5ms, classes: [{flow: bulk, rtt: 5ms}, {from: senders, to: receiver, loss: 1%}]}
duration: 20 RTT
replicates: 2
order: {kind: blocked, seed: 1}
settings: {mtu: 1500, cc: {sender: cubic}}
stop: {after: 120s, when: bulk}
traffic:
  - {flow: bulk, generator: iperf3, from: senders, to: receivers, count: 3, every: 1s, start: {uniform: [0s, 5s]}, port: 80}
  - {flow: web, generator: iperf3, from: sender, to: receiver, size: 1 BDP, arrivals: {poisson: 2/s, count: 5}}
captures: [{at: sender, snaplen: 96}]
loggers: [{logger: queue, at: router, interval: 5ms}]
factors:
  rwnd: [50KB, {receiver: 1MB, receiver2: 2MB}]
  home: [{path.rate: {down: 1Mbit, up: 2Mbit}, label: slow}, {path.rate: 9Mbit, path.buffer: 2 BDP, label: fast}]
  traffic.bulk.count: {from: 1, to: 4, step: 1}
  ecn: {levels: ["on", "off"], sets: tcp.ecn, at: sender}
exclude: [{home: slow, ecn: ["on"]}]
include: [{rwnd: 9MB, home: fast, traffic.bulk.count: 9, ecn: "on"}]
expect:
  - {say: It is short, metric: rtt_median_ms, where: {home: slow}, below: 20}
profiles:
  quick: {replicates: 1, traffic: {bulk: {count: 1}}}
"""
SCALARS = [
    "",
    "~",
    "no",
    "1",
    "-1",
    "010",
    "1e6",
    "10:20",
    "50KB",
    "5ms",
    "2%",
    "1 BDP",
    "BDP + 1",
    "2 * (",
    "down",
]
SCALARS += [
    "cubic",
    "sender",
    "senders",
    "bulk",
    "path.rate",
    "RTT",
    "__import__('os')",
    "9" * 40,
    "x" * 300,
    "\u20ac",
]
TEXTS = st.sampled_from(SCALARS) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=9
)
KEYS = [
    "down",
    "up",
    "label",
    "levels",
    "from",
    "to",
    "step",
    "points",
    "uniform",
    "poisson",
    "cc",
    "path.rate",
    "x",
]
JUNK = st.recursive(
    TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | TEXTS, inner, max_size=3)
    ),
    max_leaves=5,
)


def places(node: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path, made of keys and indices, to every value of a tree."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in children:
        yield (*steps, step)
        yield from places(child, (*steps, step))


PLACES = list(places(plain(parse_yaml(STUDY, "study.yaml")[0])))


def load(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        load_experiment(path, RECIPES, TESTBED)


def test_the_unchanged_study_is_valid() -> None:
    load(STUDY)


@settings(max_examples=100)
@given(st.sampled_from(PLACES), JUNK)
def test_an_experiment_with_any_value_at_any_place_is_loaded_or_refused_at_a_place(
    place: tuple[Any, ...], junk: Any
) -> None:
    tree: Any = plain(parse_yaml(STUDY, "study.yaml")[0])
    node = tree
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = junk
    try:
        load(yaml.safe_dump(tree, allow_unicode=True, sort_keys=False))
    except DefinitionError as error:
        assert error.problems
        assert all(problem.line and problem.message.strip() for problem in error.problems)


SHIPPED = [
    path.relative_to(ROOT)
    for folder in ("experiments", "experiments/fragments", "experiments/studies", "hosts")
    for path in sorted((ROOT / folder).glob("*.yaml"))
] + [Path("config.yaml")]
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ% "
JUNKS: list[Any] = [[], {}, [""], {"x": "y"}, {"from": "1ms", "to": "5ms", "step": "1ms"}]
UNITS = ["", "B", "KB", "MiB", "Mbit", "MB/s", "ms", "s", "packets", "%", " RTT", " BDP", "h"]
YAML_MARKS = [
    b"\t",
    b"\0",
    b"\xff",
    b"\r",
    b":",
    b"- ",
    b"{",
    b"]",
    b"&a ",
    b"*a ",
    b"!!x ",
    b"'",
    b"|",
    b"%",
    b"<<: ",
    b"---\n",
]


def other_value(value: Any, tree: Any, rng: random.Random) -> Any:
    """Return a random replacement of a value: with another unit, in a list, from elsewhere in the file, or nonsense."""
    swapped = tree[rng.choice(list(tree))]
    with_unit = value.rstrip(LETTERS) + rng.choice(UNITS) if isinstance(value, str) else [value, value]
    return rng.choice([with_unit, with_unit, [value], swapped, *rng.sample(SCALARS, 3), rng.choice(JUNKS)])


def mutated_tree(text: str, rng: random.Random) -> bytes:
    """Return a file in which one key is removed, misspelt or inserted, or one value is replaced."""
    tree: Any = plain(parse_yaml(text, "f")[0])
    steps = rng.choice(list(places(tree)))
    holder = tree
    for step in steps[:-1]:
        holder = holder[step]
    key, change = steps[-1], rng.choice(["drop", "misspell", "insert", "other", "other", "other"])
    if change == "drop":
        del holder[key]
    elif change == "misspell" and isinstance(holder, dict):
        renamed = {(str(one)[1:] if one == key else one): child for one, child in holder.items()}
        holder.clear()
        holder.update(renamed)
    elif change == "insert" and isinstance(holder, dict):
        holder[rng.choice(KEYS)] = rng.choice(SCALARS)
    else:
        holder[key] = other_value(holder[key], tree, rng)
    return yaml.safe_dump(tree, allow_unicode=True, sort_keys=False).encode()


def mutated_bytes(text: str, rng: random.Random) -> bytes:
    """Return a file that is cut off, or in which one bit is flipped, one mark is inserted, or one line is changed."""
    content = bytearray(text.encode())
    at = rng.randrange(len(content))
    change = rng.choice(["cut", "flip", "sign", "line", "indent"])
    if change == "flip":
        content[at] ^= 1 << rng.randrange(8)
    elif change == "sign":
        content[at:at] = rng.choice(YAML_MARKS)
    elif change != "cut":
        lines = bytes(content).split(b"\n")
        one = rng.randrange(len(lines))
        lines[one : one + 1] = (
            [lines[rng.randrange(len(lines))]] if change == "line" else [b"  " + lines[one]]
        )
        return b"\n".join(lines)
    return bytes(content[:at] if change == "cut" else content)


def plan_an_experiment_that_uses(path: Path, project: Project) -> None:
    """Plan an experiment that uses the file, and determine what its hosts must have; of a study, only read the file."""
    if path.parent.name == "studies":
        project.study_report(path.stem)
        return
    name = path.stem if path.parent.name == "experiments" else "demo"
    texts = {one.stem: one.read_text("utf-8", errors="replace") for one in project.experiments()}
    users = [one for one, text in texts.items() if path.parent.name != "experiments" and path.stem in text]
    plan = project.plan(Request(users[0] if users else name)).plan
    unsupported_paths(plan, project.catalogue)
    host_needs(plan, project.catalogue)


@settings(max_examples=100)
@given(st.sampled_from(SHIPPED), st.integers(0, 2**32))
def test_a_shipped_file_with_any_change_is_planned_or_refused_at_a_place(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    text = (ROOT / path).read_text("utf-8")
    with TemporaryDirectory() as folder:
        for name in ("experiments", "hosts"):
            copytree(ROOT / name, Path(folder) / name)
        (Path(folder) / "config.yaml").write_bytes((ROOT / "config.yaml").read_bytes())
        for name in ("templates", "analysis"):
            (Path(folder) / name).symlink_to(ROOT / name)
        (Path(folder) / path).write_bytes(rng.choice([mutated_tree, mutated_tree, mutated_bytes])(text, rng))
        project = Project(Path(folder))
        project.catalogue = RECIPES
        try:
            plan_an_experiment_that_uses(path, project)
        except DefinitionError as error:
            assert all(
                problem.line and problem.column and problem.message.strip() for problem in error.problems
            )
        except PlanError as error:
            assert "one and the same trial" in str(error)
