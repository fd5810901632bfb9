"""Plans: the file of a plan, ids and order of its trials, and the values of each trial."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from samovar.errors import DefinitionError, PlanError
from samovar.experiment import (
    Experiment,
    LoadOptions,
    Testbed,
    load_experiment,
    load_testbed,
    resolve_experiment,
)
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.yaml_tree import parse_yaml
from samovar.plan import Plan, make_plan
from samovar.plan.order import ordered
from samovar.plan.trials import word
from samovar.recipes import Catalogue
from tests.unit.plans import CATALOGUE

ROOT = Path(__file__).parents[3]
TESTBED = load_testbed(ROOT / "hosts" / "lab.yaml")
STUDY = load_experiment(ROOT / "experiments" / "tplink-buffer.yaml", Catalogue(ROOT / "templates"))
QUICK = load_experiment(
    ROOT / "experiments" / "tplink-buffer.yaml", Catalogue(ROOT / "templates"), None, LoadOptions("quick")
)

TEXT = """\
experiment: study
testbed: lab
path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}
duration: 30s
replicates: 3
order: {kind: blocked, seed: 1}
factors: {cc: [newreno, cdg], rwnd: [50KB, 1MB], mtu: [1500]}
traffic: [{flow: bulk, generator: nuttcp, from: sender, to: receiver}]
captures: [{at: sender}, {at: receiver, snaplen: 128}]
loggers: [{logger: tcp-info, at: sender}, {logger: queue, at: router, interval: 5ms}]
"""


def planned(*changes: tuple[str, str], testbed: Testbed = TESTBED) -> Plan:
    """Plan the study above with some of its text changed."""
    text = TEXT
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    tree, _ = parse_yaml(text, "study.yaml")
    merged = merge_layers([tree], [])
    return make_plan(
        resolve_experiment(Experiment.model_validate(merged).with_tree(merged), testbed), CATALOGUE
    )


def ids(plan: Plan) -> set[str]:
    return {trial.id for trial in plan.trials}


def test_a_plan_is_read_back_as_it_was_written() -> None:
    data = make_plan(QUICK, CATALOGUE).to_json()
    assert Plan.from_json(data).to_json() == data


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            b'"schema": 2',
            b'"schema": 1',
            "plan.json has the schema 1, but this release reads the schema 2; "
            "use the release that created the campaign, or start a new campaign with `fab run`",
        ),
        (
            b'"seed": 1,',
            b'"seed": "x",',
            "plan.json: seed: input should be a valid integer, unable to parse string as an integer; "
            "expected a plan written by samovar",
        ),
        (
            b'"run": [',
            b'"run": 5, "flows": [',
            "plan.json: treatments.0.resolved.run.0: input should be a valid tuple; expected a plan written by samovar",
        ),
        (b"{", b"[" * 100_000, "plan.json: damaged or incomplete; expected a plan written by samovar"),
    ],
)
def test_a_file_that_is_not_a_plan_of_this_schema_is_refused(old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        Plan.from_json(planned().to_json().replace(old, new, 1))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (rb'"experiment": "[^"]+"', b'"experiment": "../../x"'),
        (rb'"profile": null', b'"profile": "../x"'),
        (rb'\n\["[^"]+",', b'\n["../../x",'),
        (rb'\n\["[^"]+",', b'\n["/etc",'),
    ],
)
def test_a_name_in_plan_json_cannot_lead_out_of_the_results(pattern: bytes, name: bytes) -> None:
    with pytest.raises(PlanError, match="string should match pattern"):
        Plan.from_json(re.sub(pattern, name, planned().to_json(), count=1))


def test_the_plan_of_tplink_buffer_has_the_numbers_of_trials_that_its_report_states() -> None:
    plan = make_plan(STUDY, CATALOGUE)
    counted = {part.name: sum(trial.part == part.name for trial in plan.trials) for part in plan.parts}
    assert counted == {"buffer": 3 * 8, "window": 21 * 5}
    assert len(make_plan(QUICK, CATALOGUE).trials) == 3 + 12


def test_more_replicates_add_trials_and_keep_the_order_of_the_existing_ones() -> None:
    few, many = planned(), planned(("replicates: 3", "replicates: 5"))
    assert [trial.id for trial in many.trials[: len(few.trials)]] == [trial.id for trial in few.trials]
    assert len(many.trials) == 5 * 4


@pytest.mark.parametrize(
    "change",
    [
        ("rate: 8Mbit", "rate: 9Mbit"),
        ("rtt: 10ms", "rtt: 11ms"),
        ("buffer: 50packets", "buffer: 75KB"),
        ("duration: 30s", "duration: 31s"),
        ("mtu: [1500]", "mtu: [1400]"),
        ("generator: nuttcp", "generator: iperf3"),
        ("snaplen: 128", "snaplen: 96"),
        ("interval: 5ms", "interval: 6ms"),
    ],
)
def test_an_edit_that_affects_all_trials_changes_all_ids(change: tuple[str, str]) -> None:
    assert not ids(planned()) & ids(planned(change))


def test_a_changed_level_changes_the_ids_of_its_own_trials_only() -> None:
    unchanged = ids(planned()) & ids(planned(("1MB", "2MB")))
    assert unchanged == {trial.id for trial in planned().trials if trial.treatment["rwnd"] == "50KB"}


@pytest.mark.parametrize("change", [("seed: 1", "seed: 2"), ("kind: blocked", "kind: sequential")])
def test_another_kind_or_seed_of_the_order_keeps_the_ids_of_trials(change: tuple[str, str]) -> None:
    assert ids(planned()) == ids(planned(change))


def test_a_new_title_or_figure_keeps_the_ids_of_trials() -> None:
    assert ids(planned()) == ids(planned(("testbed: lab", "title: New\nfigures: [rtt-cdf]\ntestbed: lab")))


def test_the_id_of_a_trial_contains_its_levels_and_its_part_if_there_are_several_parts() -> None:
    assert "newreno-50KB-1500-r1-" in {trial.id[:-6] for trial in planned().trials}
    plan = make_plan(resolve_experiment(STUDY.experiment, TESTBED), CATALOGUE)
    assert all(trial.id.startswith(f"{trial.part}-") for trial in plan.trials)


@given(st.text())
def test_a_level_in_an_id_is_safe_in_a_file_name(level: str) -> None:
    assert set(word(level)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-")
    assert not word(level).startswith((".", "-"))


def test_levels_that_give_the_same_trial_are_refused() -> None:
    """The error has the position of the levels, and the line of `exclude` that leaves out the second level."""
    with pytest.raises(DefinitionError) as caught:
        planned(("rwnd: [50KB, 1MB]", "rwnd: [50KB, 50000B]"))
    (problem,) = caught.value.problems
    assert problem.text[problem.column - 1 :].startswith("[50KB, 50000B]")
    assert "rwnd 50KB and 50000B give the same trial where cc is newreno" in problem.message
    assert 'or add the line {cc: "newreno", rwnd: "50000B", ' in problem.message


@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 10**6))
def test_a_block_contains_each_treatment_once(treatments: int, replicates: int, seed: int) -> None:
    slots = ordered("blocked", seed, "main", treatments, replicates)
    for block in range(1, replicates + 1):
        inside = slots[(block - 1) * treatments : block * treatments]
        assert {slot.block for slot in inside} == {block}
        assert sorted(slot.treatment for slot in inside) == list(range(treatments))


@given(st.sampled_from(["sequential", "shuffled", "blocked"]), st.integers(1, 30), st.integers(1, 9))
def test_an_order_contains_each_replicate_of_each_treatment_once(
    kind: str, treatments: int, replicates: int
) -> None:
    slots = ordered(kind, 1, "main", treatments, replicates)
    every = {(index, one) for index in range(treatments) for one in range(1, replicates + 1)}
    assert len(slots) == len(every)
    assert {(slot.treatment, slot.replicate) for slot in slots} == every


def test_the_order_of_a_seed_is_the_same_on_every_machine() -> None:
    assert [slot.treatment for slot in ordered("blocked", 20130417, "window", 6, 2)] == BLOCKED
    assert [slot.treatment for slot in ordered("shuffled", 7, "main", 6, 1)] == SHUFFLED


BLOCKED = [2, 0, 1, 4, 3, 5, 4, 1, 0, 2, 5, 3]
SHUFFLED = [1, 2, 5, 4, 0, 3]


def test_the_settings_of_a_host_depend_on_its_role_in_the_traffic() -> None:
    trial = next(t for t in planned(("mtu: [1500]", "mtu: [1500], txd: [256]")).trials)
    source, router, sink = (trial.resolved.hosts[name] for name in ("src", "rtr", "dst"))
    assert (source.cc, source.rwnd_bytes, source.txd) == (trial.treatment["cc"], None, 256)
    assert (sink.cc, sink.txd) == (None, None)
    assert sink.rwnd_bytes == {"50KB": 50_000, "1MB": 1_000_000}[trial.treatment["rwnd"]]
    assert (router.cc, router.rwnd_bytes, router.txd) == (None, None, None)
    assert {host.mtu_bytes for host in (source, router, sink)} == {1500}
    assert router.interfaces == ("eth1", "eth2")


def test_addresses_and_interfaces_come_from_the_testbed() -> None:
    resolved = planned().trials[0].resolved
    (flow,) = resolved.flows
    assert (flow.from_address, flow.to_address, flow.port) == ("172.16.10.2", "172.16.11.2", 5001)
    assert [(one.host, one.interface, one.snaplen_bytes) for one in resolved.captures] == [
        ("src", "eth1", 96),
        ("dst", "eth1", 128),
    ]
    assert [(one.host, one.interface, one.interval_s) for one in resolved.loggers] == [
        ("src", "eth1", None),
        ("rtr", "eth2", 0.005),
    ]


def test_flows_without_a_port_get_the_next_free_one() -> None:
    flows = "".join(
        f"{{flow: f{index}, generator: nuttcp, from: sender, to: receiver{port}}}, "
        for index, port in enumerate(["", ", port: 5002", "", ", port: 5001"])
    )
    plan = planned(("{flow: bulk, generator: nuttcp, from: sender, to: receiver}", flows))
    assert [flow.port for flow in plan.trials[0].resolved.flows] == [5003, 5002, 5004, 5001]


def test_a_path_factor_overrides_the_path() -> None:
    plan = planned(("mtu: [1500]", "path.buffer: [64KB, 10packets], path.aqm: [codel]"))
    paths = {
        (path.down.aqm, path.down.buffer_packets, path.down.buffer_bytes, path.down.rate_bps)
        for path in (trial.resolved.path for trial in plan.trials)
        if path is not None
    }
    assert paths == {("codel", None, 64_000, 8_000_000), ("codel", 10, None, 8_000_000)}


def test_a_flow_factor_overrides_its_flow() -> None:
    plan = planned(
        ("mtu: [1500]", "traffic.bulk.size: [1MB], traffic.bulk.length: [8KB], cc: [cubic], cc.beta: [3]")
    )
    resolved = plan.trials[0].resolved
    (flow,) = resolved.flows
    assert (flow.size_bytes, flow.duration_s, flow.parameters) == (1_000_000, None, {"length": "8KB"})
    assert resolved.hosts["src"].cc_parameters == {"beta": "3"}


def test_the_deadline_of_a_flow_with_a_duration_is_15_seconds_after_its_end() -> None:
    resolved = planned(("to: receiver}", "to: receiver, start: 2s}")).trials[0].resolved
    assert (resolved.duration_s, resolved.deadline_s) == (32.0, 47.0)


def test_the_deadline_of_a_transfer_is_twice_its_estimated_duration_plus_30_seconds() -> None:
    resolved = planned(("to: receiver}", "to: receiver, size: 8MB}")).trials[0].resolved
    assert resolved.flows[0].duration_s is None
    assert (resolved.duration_s, resolved.deadline_s) == (15.0, 60.0)


@pytest.mark.parametrize(
    ("rates", "ends"),
    [
        ("{down: 1Mbit, up: 100Mbit}", "from: sender, to: receiver"),
        ("{down: 100Mbit, up: 1Mbit}", "from: receiver, to: sender"),
    ],
)
def test_the_deadline_leaves_time_to_empty_the_slowest_queue_three_times(rates: str, ends: str) -> None:
    path = ("rate: 8Mbit", f"rate: {rates}, aqm: bfifo"), ("50packets", "2MB")
    resolved = planned(*path, ("from: sender, to: receiver", ends)).trials[0].resolved
    assert (resolved.duration_s, resolved.deadline_s) == (30.0, 78.0)


def test_the_duration_of_a_transfer_over_a_wlan_is_estimated_from_the_throughput_of_the_wlan() -> None:
    plan = planned(
        ("rate: 8Mbit", "rate: 100Mbit"),
        ("rwnd: [50KB, 1MB], ", ""),
        ("from: sender, to: receiver}", "from: sta1, to: peer1, size: 1GB}"),
        (
            "captures: [{at: sender}, {at: receiver, snaplen: 128}]\nloggers: [{logger: tcp-info, at: sender}, ",
            "loggers: [",
        ),
        testbed=load_testbed(ROOT / "hosts" / "wlan.yaml"),
    )
    resolved = plan.trials[0].resolved
    assert resolved.duration_s == 377.685, "1 GB at 26.84 Mbit/s, plus 25 % and 5 s"


def test_the_duration_of_a_transfer_depends_on_its_window_and_the_rtt_of_its_class() -> None:
    far = planned(
        ("to: receiver}", "to: receiver, size: 10MB, rwnd: 64KB}"),
        ("buffer: 50packets", "buffer: 50packets, classes: [{flow: bulk, rtt: 500ms}]"),
    )
    assert far.trials[0].resolved.duration_s == 102.656, "10 MB at 64 KB each 500 ms, plus 25 % and 5 s"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("to: receiver}", "to: receiver3}"), "testbed lab: unknown host or role 'receiver3'; known: "),
        (("to: receiver}", "to: src}"), "flow bulk: no links lead from src to src; "),
        (("duration: 30s\n", ""), "flow bulk: never ends; add `size` or `duration`"),
        (("buffer: 50packets", "loss: 0%"), "the path has no rate or no buffer; it needs both"),
        (
            ("{at: sender}", "{at: sender}, {at: src}"),
            "captures: eth1 at src is recorded twice; remove one of the entries",
        ),
    ],
)
def test_an_experiment_that_cannot_run_on_the_testbed_is_refused(
    change: tuple[str, str], message: str
) -> None:
    with pytest.raises((PlanError, DefinitionError)) as caught:
        planned(change)
    assert message in str(caught.value)


def test_a_class_of_a_flow_without_ports_is_refused() -> None:
    classes = ("buffer: 50packets", "buffer: 50packets, classes: [{flow: bulk, rtt: 90ms}]")
    with pytest.raises(DefinitionError, match=r"flow bulk: path\.classes cannot match packets without ports"):
        planned(classes, ("generator: nuttcp", "generator: ping"), ("rwnd: [50KB, 1MB], ", ""))


def test_only_an_experiment_without_a_path_can_be_planned_for_a_testbed_without_a_bottleneck() -> None:
    bare = TESTBED.model_copy(update={"place": None})
    assert (
        planned(("path: {rate: 8Mbit, rtt: 10ms, buffer: 50packets}\n", ""), testbed=bare)
        .trials[0]
        .resolved.path
        is None
    )
    with pytest.raises(PlanError, match="testbed lab: has no bottleneck; add one, or remove the path"):
        planned(testbed=bare)
