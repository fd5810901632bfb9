"""Resolving treatments: levels of every form, both directions, classes, flows, stops, random values."""

from __future__ import annotations

import pytest

from samovar.errors import DefinitionError, PlanError
from samovar.experiment import Distribution, Testbed, load_testbed
from samovar.plan import ClassPlan, FlowPlan, MatchPlan, PathPlan, Plan, Resolved, StopPlan
from samovar.plan.flows import RandomStream, poisson_s
from tests.unit.plans import BULK, DUMBBELL, LAB, ROOT, planned, study

BULK_FLOW = "{flow: bulk, generator: nuttcp, from: sender, to: receiver"


def first(text: str, testbed: Testbed = LAB) -> Resolved:
    return planned(text, testbed).trials[0].resolved


def path(text: str) -> PathPlan:
    found = first(text).path
    assert found is not None
    return found


def flows(traffic: str, more: str = "", testbed: Testbed = DUMBBELL) -> tuple[FlowPlan, ...]:
    return first(study(more, f"traffic: [{traffic}]\n"), testbed).flows


def by_level(plan: Plan) -> dict[tuple[str, ...], Resolved]:
    return {tuple(trial.treatment.values()): trial.resolved for trial in plan.trials}


def with_path(written: str, more: str = "") -> PathPlan:
    text = study(more).replace("{rate: 8Mbit, rtt: 10ms, buffer: 50packets}", written)
    return path(text)


def test_a_rate_without_directions_shapes_only_downstream() -> None:
    found = with_path("{rate: 8Mbit, rtt: 10ms, buffer: 50packets, loss: 1%}")
    assert (found.down.interface, found.down.rate_bps, found.down.aqm) == ("eth2", 8_000_000, "pfifo")
    assert (found.up.interface, found.up.rate_bps, found.up.aqm) == ("eth1", None, None)
    assert (found.up.buffer_packets, found.up.loss, found.down.loss) == (None, 0.0, 0.01)
    assert (found.rtt_s, found.down.delay_s, found.up.delay_s) == (0.01, 0.005, 0.005)


def test_a_rate_for_each_direction_shapes_both_with_one_buffer_and_aqm() -> None:
    found = with_path("{rate: {down: 100Mbit, up: 40Mbit}, aqm: codel, buffer: 64KB, target: 5ms}")
    assert (found.down.rate_bps, found.up.rate_bps) == (100_000_000, 40_000_000)
    assert {(direction.aqm, direction.buffer_bytes) for direction in (found.down, found.up)} == {
        ("codel", 64_000)
    }
    assert found.up.aqm_parameters == {"target": "5ms"}


def test_delays_are_one_way_and_their_sum_is_the_rtt() -> None:
    found = with_path("{rate: 8Mbit, delay: {down: 30ms, up: 10ms}, buffer: 50packets}")
    assert (found.down.delay_s, found.up.delay_s, found.rtt_s) == (0.03, 0.01, 0.04)


def test_a_level_of_rtt_replaces_the_delays() -> None:
    written = "{rate: 8Mbit, delay: {down: 30ms, up: 10ms}, buffer: 50packets}"
    found = with_path(written, "factors: {path.rtt: [8ms]}\n")
    assert (found.down.delay_s, found.up.delay_s, found.rtt_s) == (0.004, 0.004, 0.008)


def test_a_level_of_one_direction_leaves_the_other_unchanged() -> None:
    found = path(study("factors: {path.rate: [{up: 2Mbit}], path.loss: [{up: 3%}]}\n"))
    assert (found.down.rate_bps, found.up.rate_bps, found.up.loss) == (8_000_000, 2_000_000, 0.03)


def test_impairments_apply_to_the_given_direction_or_downstream() -> None:
    found = with_path(
        "{rate: 8Mbit, buffer: 50packets, jitter: 1ms, loss: {up: 2%}, loss_burst: 3packets, reorder: 1%,"
        " duplicate: {down: 1%, up: 2%}}"
    )
    down, up = found.down, found.up
    assert (down.jitter_s, down.loss, down.reorder, down.duplicate) == (0.001, 0.0, 0.01, 0.01)
    assert (up.jitter_s, up.loss, up.reorder, up.duplicate) == (0.0, 0.02, 0.0, 0.02)
    assert (down.loss_burst_packets, up.loss_burst_packets) == (None, 3.0)


def test_linked_levels_vary_together() -> None:
    more = (
        "factors: {home: [{path.rate: 10Mbit, path.buffer: 1 BDP, rwnd: 2 BDP, label: slow},"
        " {path.rate: {down: 100Mbit, up: 40Mbit}, path.buffer: 64KB, rwnd: 1MB}], mtu: [1500, 600]}\n"
    )
    found = by_level(planned(study(more)))
    slow, fast = found["slow", "1500"], found["100Mbit-40Mbit-64KB-1MB", "600"]
    assert slow.path is not None and fast.path is not None
    assert (slow.path.down.buffer_bytes, slow.hosts["dst"].rwnd_bytes) == (12_500, 25_000)
    assert (fast.path.up.rate_bps, fast.path.up.buffer_bytes, fast.mtu_bytes) == (40_000_000, 64_000, 600)


def test_a_level_may_have_a_value_for_each_host() -> None:
    more = "factors: {cc: [{sender: cubic, sender2: cdg}, newreno]}\n"
    traffic = "traffic: [{flow: bulk, generator: nuttcp, from: senders, to: receivers}]\n"
    found = by_level(planned(study(more, traffic), DUMBBELL))
    hosts = found["cubic-cdg",].hosts
    assert [hosts[name].cc for name in ("src1", "src2", "src3", "rtr", "dst1")] == [
        "cubic",
        "cdg",
        None,
        None,
        None,
    ]
    assert {host.cc for name, host in found["newreno",].hosts.items() if host.role == "sender"} == {"newreno"}


def test_a_factor_may_name_the_parameter_that_it_sets_and_its_hosts() -> None:
    more = "factors: {sack: {levels: [on, off], sets: tcp.sack, at: sender}}\n"
    found = by_level(planned(study(more)))
    assert found["off",].hosts["src"].settings == {"tcp": {"sack": "off"}}
    assert found["off",].hosts["dst"].settings == {}


def test_a_parameter_that_only_a_patched_congestion_control_has_is_planned() -> None:
    found = by_level(planned(study("factors: {cc.of_a_patch: [1, 2]}\nsettings: {cc: cubic}\n")))
    assert found["2",].hosts["src"].cc_parameters == {"of_a_patch": "2"}


def test_levels_override_settings() -> None:
    more = "settings: {cc: cubic, mtu: 1400, tcp.sack: off, cc.beta: 3}\nfactors: {mtu: [600, 1500]}\n"
    found = by_level(planned(study(more)))
    source, router = found["600",].hosts["src"], found["600",].hosts["rtr"]
    assert (source.cc, source.mtu_bytes, source.cc_parameters) == ("cubic", 600, {"beta": "3"})
    assert (source.settings, router.settings, router.cc) == ({"tcp": {"sack": "off"}}, {}, None)


def test_formulas_are_evaluated_after_all_levels_are_applied() -> None:
    more = (
        'duration: 20 RTT\nfactors: {path.rate: [8Mbit, 80Mbit], path.buffer: [2 BDP, "max(1 BDP, 50KB)"]}\n'
    )
    found = by_level(planned(study(more).replace("duration: 30s\n", "", 1)))
    buffers = {levels: one.path.down.buffer_bytes for levels, one in found.items() if one.path}
    assert buffers == {
        ("8Mbit", "2 BDP"): 20_000,
        ("8Mbit", "max(1 BDP, 50KB)"): 50_000,
        ("80Mbit", "2 BDP"): 200_000,
        ("80Mbit", "max(1 BDP, 50KB)"): 100_000,
    }
    assert {one.duration_s for one in found.values()} == {0.2}


def test_excluded_treatments_are_left_out_and_included_ones_come_last() -> None:
    more = (
        "factors: {cc: [cubic, cdg], mtu: [600, 1200, 1500]}\norder: {kind: sequential}\n"
        "exclude: [{cc: cdg, mtu: [600, 1200]}]\ninclude: [{cc: bbr, mtu: 1500}]\n"
    )
    found = [tuple(trial.treatment.values()) for trial in planned(study(more)).trials]
    assert found == [("cubic", "600"), ("cubic", "1200"), ("cubic", "1500"), ("cdg", "1500"), ("bbr", "1500")]


def test_counted_flows_have_their_own_labels_ports_and_starts() -> None:
    found = flows(BULK_FLOW + ", count: 3, every: 10s, start: 5s, port: 6000}")
    assert [(one.label, one.group, one.port, one.start_s) for one in found] == [
        ("bulk-1", "bulk", 6000, 5.0),
        ("bulk-2", "bulk", 6001, 15.0),
        ("bulk-3", "bulk", 6002, 25.0),
    ]


def test_a_count_of_one_numbers_the_flow_and_no_count_does_not() -> None:
    assert [one.label for one in flows(BULK_FLOW + ", count: 1}")] == ["bulk-1"]
    assert [one.label for one in flows(BULK_FLOW + "}")] == ["bulk"]


def test_a_count_may_be_a_factor() -> None:
    found = by_level(planned(study("factors: {traffic.bulk.count: [4, 8]}\n")))
    assert {levels: len(one.flows) for levels, one in found.items()} == {("4",): 4, ("8",): 8}


def test_a_count_of_zero_leaves_the_flow_out() -> None:
    ping = "{flow: ping, generator: ping, from: sender, to: receiver, count: 1}"
    found = by_level(
        planned(study("factors: {traffic.ping.count: [0, 1]}\n", f"traffic: [{BULK_FLOW}}}, {ping}]\n"))
    )
    labels = {levels: [flow.label for flow in one.flows] for levels, one in found.items()}
    assert labels == {("0",): ["bulk"], ("1",): ["bulk", "ping-1"]}
    with pytest.raises(DefinitionError, match="main: no flow; every trial needs at least one flow"):
        flows(BULK_FLOW + ", count: 0}")


def test_a_plural_role_gives_one_flow_for_each_of_its_hosts() -> None:
    found = flows("{flow: bulk, generator: nuttcp, from: senders, to: receivers}")
    assert [(one.label, one.from_host, one.to_host) for one in found] == [
        (f"bulk-{n}", f"src{n}", f"dst{n}") for n in (1, 2, 3, 4)
    ]
    many = flows("{flow: bulk, generator: nuttcp, from: senders, to: receiver, count: 6}")
    assert [one.from_host for one in many] == ["src1", "src2", "src3", "src4", "src1", "src2"]
    assert {one.to_host for one in many} == {"dst1"}


def test_a_flow_may_have_its_own_cc_rwnd_dscp_and_parameters() -> None:
    (found,) = flows(BULK_FLOW.replace("nuttcp", "iperf3") + ", cc: cdg, rwnd: 200KB, dscp: EF, length: 8KB}")
    assert (found.cc, found.rwnd_bytes, found.dscp, found.parameters) == (
        "cdg",
        200_000,
        46,
        {"length": "8KB"},
    )


def test_two_windows_for_one_peer_are_refused() -> None:
    other = ", {flow: other, generator: nuttcp, from: sender, to: receiver, rwnd: 50KB}"
    with pytest.raises(DefinitionError, match=r"flow other: flow bulk from src1 to dst1 has another rwnd"):
        flows(BULK_FLOW + ", rwnd: 20KB}" + other)


def test_a_udp_flow_needs_no_window_beside_a_tcp_flow_with_one() -> None:
    other = ", {flow: voice, generator: iperf3-udp, from: sender, to: receiver, rate: 1Mbit}"
    found = flows(BULK_FLOW + ", rwnd: 20KB}" + other)
    assert [one.rwnd_bytes for one in found] == [20_000, None]


def test_the_duration_of_a_transfer_is_estimated_from_the_default_rate_of_its_recipe() -> None:
    udp = "traffic: [{flow: udp, generator: iperf-udp, from: sender, to: receiver, size: 1MB}]\n"
    assert first(study("", udp)).duration_s == 8 * 1.25 + 5  # at 1 Mbit/s, over a path of 8 Mbit/s


@pytest.mark.parametrize(
    ("generator", "seconds"),
    [
        ("voip", 0.02 * 56_000 / 172),
        ("game", 0.01 * 56_000 / 60),
        ("ping", 1000),
        ("http, object: 1KB, objects: 2, period: 3s", 84),
        ("http, object: 1KB", 0.056),  # one page after the other, over a path of 8 Mbit/s
        ("incast, response: 2KB", 28),
    ],
)
def test_the_duration_of_a_transfer_in_packets_or_pages_is_estimated_from_interval_and_rate(
    generator: str, seconds: float
) -> None:
    flow = f"{{flow: one, generator: {generator}, from: sender, to: receiver, size: 56KB}}"
    planned_s = first(study("", f"traffic: [{flow}]\n")).duration_s
    assert planned_s == pytest.approx(seconds * 1.25 + 5, abs=0.001)


def test_a_flow_with_until_ends_with_the_other_flow() -> None:
    ping = ", {flow: ping, generator: nuttcp, from: sender, to: receiver, until: bulk}"
    found = first(study("", f"traffic: [{BULK_FLOW}, count: 2, every: 10s}}{ping}]\n"))
    assert [(one.label, one.until, one.duration_s) for one in found.flows][2] == ("ping", "bulk", None)
    assert (found.duration_s, found.deadline_s) == (40.0, 55.0)


def test_flows_that_wait_for_each_other_are_refused() -> None:
    other = ", {flow: other, generator: nuttcp, from: sender, to: receiver, until: bulk}"
    with pytest.raises(
        DefinitionError, match=r"flow bulk: until other: that flow never ends, or waits for this one"
    ):
        flows(BULK_FLOW + ", until: other}" + other)


@pytest.mark.parametrize(
    ("stop", "ends"),
    [
        ("{after: 12s}", (12.0, 27.0)),
        ("{when: short}", (5.0, 20.0)),
        ("{after: 3s, when: short}", (3.0, 18.0)),
        ("{after: 1h}", (30.0, 45.0)),
    ],
)
def test_the_traffic_ends_at_its_stop_or_at_the_end_of_all_flows(
    stop: str, ends: tuple[float, float]
) -> None:
    short = ", {flow: short, generator: nuttcp, from: sender, to: receiver, duration: 5s}"
    found = first(study(f"stop: {stop}\n", f"traffic: [{BULK_FLOW}}}{short}]\n"))
    assert (found.duration_s, found.deadline_s) == ends
    assert isinstance(found.stop, StopPlan)


def test_a_flow_without_an_end_ends_when_the_traffic_stops() -> None:
    text = study("stop: {after: 12s}\n").replace("duration: 30s\n", "")
    found = first(text)
    assert (found.flows[0].duration_s, found.duration_s) == (None, 12.0)


def test_a_class_of_a_flow_matches_its_addresses_and_ports() -> None:
    text = study("", f"traffic: [{BULK_FLOW}, count: 2}}]\n").replace(
        "buffer: 50packets}", "buffer: 50packets, loss: 1%, classes: [{flow: bulk, rtt: 80ms}]}"
    )
    assert path(text).classes == (
        ClassPlan(
            match=tuple(
                MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=port)
                for port in (5001, 5002)
            ),
            delay_down_s=0.04,
            delay_up_s=0.04,
            loss=0.01,
        ),
    )


def test_a_class_that_sets_loss_keeps_the_delay_of_the_path() -> None:
    text = study("").replace(
        "buffer: 50packets}", "buffer: 50packets, classes: [{from: sender, to: 172.16.11.0/24, loss: 2%}]}"
    )
    (found,) = path(text).classes
    assert found.match == (MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.0/24"),)
    assert (found.delay_down_s, found.delay_up_s, found.loss) == (0.005, 0.005, 0.02)


CLASSES = "buffer: 50packets, classes: [{flow: bulk, rtt: 80ms}, {name: all, from: sender, to: receiver, loss: 1%}]}"


@pytest.mark.parametrize(
    ("factor", "found"),
    [
        ("path.classes.bulk.rtt: [20ms, 4 RTT]", [(0.01, 0.01, 0.0), (0.02, 0.02, 0.0)]),
        ("path.classes.bulk.rtt: [200ms]", [(0.1, 0.1, 0.0)]),
        ("path.classes.bulk.delay: [{down: 3ms, up: 1ms}]", [(0.003, 0.001, 0.0)]),
        ("path.classes.bulk.loss: [0%, path.loss / 2 + 1%]", [(0.04, 0.04, 0.0), (0.04, 0.04, 0.01)]),
        ("far: [{path.classes.bulk.rtt: 20ms, path.classes.bulk.loss: 2%}]", [(0.01, 0.01, 0.02)]),
    ],
)
def test_the_delay_and_the_loss_of_a_class_may_be_factors(
    factor: str, found: list[tuple[float, ...]]
) -> None:
    text = study(f"factors: {{{factor}}}\norder: {{kind: sequential}}\n").replace(
        "buffer: 50packets}", CLASSES
    )
    classes = [trial.resolved.path.classes[0] for trial in planned(text).trials if trial.resolved.path]
    assert [(one.delay_down_s, one.delay_up_s, one.loss) for one in classes] == found


def test_the_loss_of_a_class_of_subnets_may_be_a_factor_by_the_name_of_the_class() -> None:
    text = study("factors: {path.classes.all.loss: [0%, 2%]}\n").replace("buffer: 50packets}", CLASSES)
    losses = [trial.resolved.path.classes[1].loss for trial in planned(text).trials if trial.resolved.path]
    assert sorted(losses) == [0.0, 0.02]


def test_a_class_of_an_upstream_flow_matches_the_source_port() -> None:
    text = study("", BULK.replace("from: sender, to: receiver", "from: receiver, to: sender")).replace(
        "buffer: 50packets}", "buffer: 50packets, classes: [{flow: bulk, rtt: 80ms}]}"
    )
    (match,) = path(text).classes[0].match
    assert match == MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", from_port=5001)


UNIFORM = f"traffic: [{BULK_FLOW}, start: {{uniform: [0s, 5s]}}, count: 2}}]\n"
POISSON = f"traffic: [{BULK_FLOW}, duration: 1s, arrivals: {{poisson: 2/s, until: 20s}}}}]\n"


def starts(text: str) -> dict[tuple[tuple[str, ...], int], tuple[float, ...]]:
    return {
        (tuple(trial.treatment.values()), trial.replicate): tuple(f.start_s for f in trial.resolved.flows)
        for trial in planned(text).trials
    }


@pytest.mark.parametrize("traffic", [UNIFORM, POISSON])
def test_random_values_are_equal_for_all_treatments_of_a_replicate_and_differ_between_replicates(
    traffic: str,
) -> None:
    found = starts(study("replicates: 3\nfactors: {cc: [cubic, cdg]}\n", traffic))
    by_replicate = {n: {one for (_, replicate), one in found.items() if replicate == n} for n in (1, 2, 3)}
    assert [len(values) for values in by_replicate.values()] == [1, 1, 1]
    assert len(set.union(*by_replicate.values())) == 3


def test_more_replicates_keep_the_existing_random_values_and_ids() -> None:
    few = planned(study("replicates: 2\nfactors: {cc: [cubic, cdg]}\n", UNIFORM))
    many = planned(study("replicates: 4\nfactors: {cc: [cubic, cdg]}\n", UNIFORM))
    assert [one.id for one in few.trials] == [one.id for one in many.trials[:4]]


def test_plans_with_different_seeds_have_different_random_starts() -> None:
    assert starts(study("order: {seed: 2}\n", UNIFORM)) != starts(study("order: {seed: 3}\n", UNIFORM))


def test_random_values_are_the_same_on_every_machine() -> None:
    stream = RandomStream(1, "main", "bulk", 1)
    assert round(stream.value(Distribution("uniform", (0.0, 5.0))), 6) == UNIFORM_1
    assert poisson_s(stream, 2.0, None, 3) == POISSON_1
    assert all(instant < 20.0 for instant in poisson_s(stream, 2.0, 20.0, None))


UNIFORM_1 = 1.57026
POISSON_1 = (0.188477, 1.836317, 1.892655)


def test_too_many_arrivals_for_a_trial_are_refused() -> None:
    with pytest.raises(PlanError, match="flow bulk: more than 10000 arrivals"):
        poisson_s(RandomStream(1, "main", "bulk", 1), 1e6, 60.0, None)


def test_the_system_of_a_host_includes_its_release() -> None:
    freebsd = load_testbed(ROOT / "hosts" / "example-freebsd-11.yaml")
    assert {host.system for host in first(study(""), freebsd).hosts.values()} >= {"freebsd-11"}


def test_a_formula_may_use_the_rwnd_of_the_settings() -> None:
    found = planned(study("settings: {rwnd: 50KB}\n").replace("bulk,", "bulk, size: 2 rwnd,", 1))
    assert found.trials[0].resolved.flows[0].size_bytes == 100_000


def test_rwnd_in_a_formula_is_the_smallest_window_of_all_hosts() -> None:
    for windows, size_bytes in (
        ("dst1: 400KB, dst2: 10KB", 20_000),
        ("dst1: 40 BDP, dst2: 10KB", 20_000),
        ("dst1: 40KB, dst2: 2 BDP", 40_000),
    ):
        found = flows(f"{BULK_FLOW}, size: 2 rwnd}}", f"settings: {{rwnd: {{{windows}}}}}\n")
        assert found[0].size_bytes == size_bytes


def test_the_interval_of_a_logger_may_be_a_formula() -> None:
    text = study("loggers: [{logger: tcp-info, at: sender, interval: RTT / 2}]\n")
    assert first(text).loggers[0].interval_s == 0.005


def test_a_parameter_of_a_host_setting_may_be_a_formula() -> None:
    text = study("settings: {buffers.receive_max: 2 BDP}\nfactors: {shaper.rate: [path.rate / 2]}\n")
    found = first(text).hosts["dst"].settings
    assert found == {"buffers": {"receive_max": "20000B"}, "shaper": {"rate": "4000000bit"}}


@pytest.mark.parametrize(
    "key", ["tcp.autotuning: on", "buffers.receive_default: 87380B", "buffers.receive_max: 4MB"]
)
def test_a_setting_that_conflicts_with_the_value_that_rwnd_gives_it_is_refused(key: str) -> None:
    name, _, text = key.partition(": ")
    message = f"{name}: the rwnd of dst gives this setting another value than {text}; remove one of the two"
    with pytest.raises(DefinitionError, match=message):
        planned(study(f"settings: {{{key}, rwnd: 50KB}}\n"))
    with pytest.raises(DefinitionError, match=message):
        planned(study(f"settings: {{{key}}}\n").replace("bulk,", "bulk, rwnd: 50KB,", 1))
    levels = study(f"settings: {{{key}}}\nfactors: {{rwnd: [50KB, 60KB]}}\n")
    with pytest.raises(DefinitionError, match=f"{message}, or exclude the combination, where rwnd is 50KB"):
        planned(levels)
    planned(study(f"settings: {{{key}}}\n"))
    planned(study("settings: {tcp.autotuning: off, buffers.send_max: 4MB, rwnd: 50KB}\n"))


ZERO_BUFFER = "factors: {path.rtt: [0ms, 10ms], path.buffer: [1 BDP, 10packets]}\n"


@pytest.mark.parametrize(
    ("written", "interface"), [("", "eth2"), (", interface: down", "eth2"), (", interface: up", "eth1")]
)
def test_a_logger_at_the_router_uses_the_interface_with_the_queue_of_the_given_direction(
    written: str, interface: str
) -> None:
    text = study(f"loggers: [{{logger: queue, at: router{written}}}]\n")
    assert first(text).loggers[0].interface == interface


def test_a_formula_with_an_invalid_value_is_refused_with_its_position_and_the_levels() -> None:
    with pytest.raises(DefinitionError) as caught:
        planned(study(ZERO_BUFFER))
    (problem,) = caught.value.problems
    assert problem.text[problem.column - 1 :].startswith("1 BDP")
    assert problem.message == (
        "main: path.buffer.down: '1 BDP': is zero; expected a size or a count of packets such as 1 BDP, "
        "where path.rtt is 0ms, path.buffer is 1 BDP"
    )


def test_formulas_may_have_invalid_values_in_excluded_treatments() -> None:
    plan = planned(study(ZERO_BUFFER + "exclude: [{path.rtt: 0ms, path.buffer: 1 BDP}]\n"))
    assert len(plan.trials) == 3
