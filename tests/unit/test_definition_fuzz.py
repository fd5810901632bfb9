"""Whatever stands at any place of an experiment, it is accepted or refused with sentences at places."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from samovar.command.catalogue import Catalogue
from samovar.definition import load_experiment, load_testbed
from samovar.definition.yamltext import parse_yaml, plain
from samovar.errors import DefinitionError

ROOT = Path(__file__).parents[2]
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
  ecn: {levels: ["on", "off"], recipe: tcp, parameter: ecn, at: sender}
exclude: [{home: slow, ecn: ["on"]}]
include: [{rwnd: 9MB, home: fast, traffic.bulk.count: 9, ecn: "on"}]
expect:
  - {say: It is short, metric: rtt_median_ms, where: {home: slow}, below: 20}
profiles:
  quick: {replicates: 1, traffic: {bulk: {count: 1}}}
"""
WORDS = [
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
WORDS += [
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
TEXTS = st.sampled_from(WORDS) | st.text(
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


def places(node: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a tree."""
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for step, child in children:
        yield (*way, step)
        yield from places(child, (*way, step))


PLACES = list(places(plain(parse_yaml(STUDY, "study.yaml")[0])))


def load(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "study.yaml"
        path.write_text(text, encoding="utf-8")
        load_experiment(path, RECIPES, TESTBED)


def test_the_study_is_sound_to_begin_with() -> None:
    load(STUDY)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(PLACES), JUNK)
def test_anything_anywhere_is_read_or_refused_at_its_place(place: tuple[Any, ...], junk: Any) -> None:
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
