"""Recipe `bottleneck` of Linux: rates, queues, delays, classes, values as tc prints them, and refused paths."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from samovar.errors import RecipeError
from samovar.plan import ClassPlan, DirectionPlan, HostPlan, MatchPlan, PathPlan
from samovar.recipes import Catalogue, PathDirection, bottleneck_values, loss_states
from samovar.recipes.bottleneck import match_servers
from samovar.recipes.fill_settings import fill_settings
from samovar.recipes.quoting import plain, shell_environment
from samovar.recipes.recipe_filters import netem, tc_size, tc_time
from tests.unit.plans import planned, study
from tests.unit.trials import PATH, RESOLVED

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "linux" / "path"
CATALOGUE = Catalogue(ROOT / "templates")
ROUTER = HostPlan(
    os="linux", role="router", cc=None, rwnd_bytes=None, mtu_bytes=1500, txd=None, interfaces=("eth1", "eth2")
)
DOWN = DirectionPlan(
    interface="eth2", rate_bps=10_000_000, delay_s=0.02, aqm="pfifo", buffer_packets=100, loss=0.01
)
UP = DirectionPlan(interface="eth1", delay_s=0.02)
PATHS = {
    "one-way": PathPlan(router="rtr", rtt_s=0.04, down=DOWN, up=UP),
    "both-ways": PathPlan(
        router="rtr",
        rtt_s=0.05,
        down=DOWN.model_copy(
            update={"jitter_s": 0.002, "loss_burst_packets": 3.0, "reorder": 0.001, "duplicate": 0.0001}
        ),
        up=DirectionPlan(
            interface="eth1", rate_bps=2_000_000, delay_s=0.03, aqm="bfifo", buffer_bytes=50_000
        ),
    ),
    "classes": PathPlan(
        router="rtr",
        rtt_s=0.04,
        down=DOWN,
        up=UP,
        classes=(
            ClassPlan(
                match=(MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=5002),),
                delay_down_s=0.05,
                delay_up_s=0.05,
                loss=0.0,
            ),
        ),
    ),
    "bare": PathPlan(
        router="rtr",
        rtt_s=0.0,
        down=DOWN.model_copy(update={"delay_s": 0.0, "loss": 0.0}),
        up=DirectionPlan(interface="eth1"),
    ),
}
AQMS = sorted(CATALOGUE.names("aqm", "linux"))
PARAMETERS = {
    "red": {"min": "20KB", "max": "60KB", "probability": "5%", "ecn": "on"},
    "codel": {"target": "250us", "interval": "15500us", "ecn": "on", "ce_threshold": "1ms"},
    "fq_codel": {"flows": "512", "quantum": "300B", "ecn": "off"},
    "pie": {"target": "333us", "ecn": "on", "alpha": "3"},
    "fq_pie": {"target": "10ms", "ecn": "on", "bytemode": "on"},
    "cake": {"interval": "30ms", "tins": "diffserv4", "fairness": "flows"},
    "fq": {"flow_limit": "50packets"},
    "sfq": {"perturb": "10", "headdrop": "on"},
    "choke": {"min": "10packets", "max": "40packets"},
    "hhf": {"admit_bytes": "64KiB"},
}


def _values(path: PathPlan) -> dict[str, object]:
    return dict(bottleneck_values(path, ROUTER, 1500, CATALOGUE))


def _direction(path: PathPlan, name: str) -> PathDirection:
    directions: list[PathDirection] = _values(path)["directions"]  # type: ignore[assignment]
    return next(direction for direction in directions if direction.name == name)


def _path_with(**changes: object) -> PathPlan:
    return PATHS["one-way"].model_copy(update={"down": DOWN.model_copy(update=changes)})


def _aqm(name: str, parameters: dict[str, str]) -> PathDirection:
    bytes_only = "buffer_bytes" in CATALOGUE.header("aqm", name, "linux").parameters
    buffer = {"buffer_packets": None, "buffer_bytes": 150_000} if bytes_only else {}
    return _direction(_path_with(aqm=name, aqm_parameters=parameters, **buffer), "down")


def _matches_golden(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("SAMOVAR_WRITE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("block", ["read", "set", "wanted", "restore", "counters"])
@pytest.mark.parametrize("name", sorted(PATHS))
def test_the_scripts_of_a_path_are_equal_to_the_golden_files(name: str, block: str) -> None:
    text = CATALOGUE.recipe("setting", "bottleneck", "linux").render(
        block, {**_values(PATHS[name]), "was": {}}
    )
    _matches_golden(f"{name}-{block}.{'txt' if block == 'wanted' else 'sh'}", text)
    if block != "wanted":
        done = subprocess.run(["dash", "-n"], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


def test_commands_and_expected_output_of_every_queue_discipline_are_equal_to_the_golden_file() -> None:
    rows = []
    for name in AQMS:
        for parameters in ({}, PARAMETERS.get(name)):
            if parameters is not None:
                direction = _aqm(name, parameters)
                rows += [direction.queue, *(f"  {line}" for line in direction.queue_shown)]
    _matches_golden("aqm.txt", "\n".join(rows) + "\n")


SHOWN_BY_NEW_TC = (
    "fq limit 100p flow_limit 100p buckets 1024 orphan_mask 1023 nopacing bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 "
    "weights 589824 196608 65536 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms"
)
"""The output of tc for fq since Linux and iproute2 6.7 (fq_print_opt() of iproute2's q_fq.c)."""


def test_fq_is_recognised_if_tc_prints_its_priority_bands() -> None:
    assert [line for line in _aqm("fq", {}).queue_shown if line not in SHOWN_BY_NEW_TC] == []


RECORDED_OF_CAKE = """\
qdisc cake 10: dev eth2 parent 1:1 bandwidth unlimited besteffort triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms raw overhead 0
 Sent 1228084 bytes 829 pkt (dropped 3, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
 memory used: 60016b of 15140Kb
                  Tin 0
  thresh           0bit
  backlog            0b
  pkts              829
"""


def test_counters_of_cake_are_read_although_tc_prints_a_table_of_tins_as_well() -> None:
    prelude = CATALOGUE.recipe("step", "prelude", "linux").render(
        "script", {"folder": "/tmp/none", "campaign": "test"}
    )
    values = {**_values(_path_with(aqm="cake", buffer_packets=None, buffer_bytes=150_000)), "was": {}}
    counters = CATALOGUE.recipe("setting", "bottleneck", "linux").render("counters", values)
    function = prelude[prelude.index("each_line() {") :].split("\n}\n")[0] + "\n}\n"
    tc = f"tc() {{ cat <<'END'\n{RECORDED_OF_CAKE}END\n}}\n"
    done = subprocess.run(
        ["dash", "-u"], input=function + tc + counters, text=True, capture_output=True, check=False
    )
    assert (done.stdout, done.stderr) == ("queue.down=1228084 829 3 0\n", "")


@pytest.mark.parametrize("name", AQMS)
def test_every_queue_discipline_has_the_requested_buffer_as_its_limit(name: str) -> None:
    direction = _aqm(name, {})
    limit = (
        "memlimit 150000"
        if name == "cake"
        else "limit 150000"
        if "150000" in direction.queue
        else "limit 100"
    )
    assert f"{limit} " in f"{direction.queue} "
    assert direction.queue_shown[0].startswith(name)


def test_each_direction_has_its_own_rate_queue_and_delay() -> None:
    down, up = _direction(PATHS["both-ways"], "down"), _direction(PATHS["both-ways"], "up")
    assert (down.arrives, down.leaves, down.rate_bps, down.queue) == (
        "eth1",
        "eth2",
        10_000_000,
        "pfifo limit 100",
    )
    assert (up.arrives, up.leaves, up.rate_bps, up.queue) == ("eth2", "eth1", 2_000_000, "bfifo limit 50000")
    assert [stage.delay_us for stage in down.stages + up.stages] == [20_000, 30_000]


def test_a_direction_without_a_rate_has_a_delay_but_no_queue() -> None:
    up = _direction(PATHS["one-way"], "up")
    assert (up.rate_bps, up.queue, up.queue_shown) == (None, "", ())
    assert [stage.delay_us for stage in up.stages] == [20_000]


def test_a_path_without_delay_uses_no_ifb_device() -> None:
    assert _direction(PATHS["bare"], "down").stages == ()
    assert "ifb" not in CATALOGUE.recipe("setting", "bottleneck", "linux").render(
        "set", _values(PATHS["bare"])
    )


def test_a_class_is_matched_before_all_other_packets_in_both_directions() -> None:
    down, up = _direction(PATHS["classes"], "down"), _direction(PATHS["classes"], "up")
    assert [(stage.name, stage.delay_us, stage.loss) for stage in down.stages] == [
        ("down1", 50_000, 0.0),
        ("down", 20_000, 0.01),
    ]
    assert (down.stages[0].matches[0].port, up.stages[0].matches[0].from_port) == (5002, 5002)
    assert up.stages[0].matches[0].from_subnet == "172.16.11.2/32"


@pytest.mark.parametrize(
    ("generator", "ends", "source_port", "destination_port"),
    [
        ("iperf3", "from: sender, to: receiver", None, 5001),
        ("iperf3", "from: receiver, to: sender", 5001, None),
        ("http", "from: sender, to: receiver", 5001, None),
        ("http", "from: receiver, to: sender", None, 5001),
        ("nttcp", "from: sender, to: receiver", None, None),
    ],
)
def test_a_class_matches_the_port_on_which_the_generator_of_its_flow_listens(
    generator: str, ends: str, source_port: int | None, destination_port: int | None
) -> None:
    text = study("", f"traffic: [{{flow: a, generator: {generator}, {ends}}}]\n")
    text = text.replace("buffer: 50packets}", "buffer: 50packets, classes: [{flow: a, rtt: 80ms}]}")
    settings = fill_settings("rtr", planned(text).trials[0].resolved, CATALOGUE)
    bottleneck = next(one for one in settings if one.recipe.name == "bottleneck")
    down, up = bottleneck.values["directions"]  # type: ignore[misc]
    (downstream,), (upstream,) = down.stages[0].matches, up.stages[0].matches  # type: ignore[has-type]
    assert (downstream.from_port, downstream.port) == (source_port, destination_port)
    assert (upstream.from_port, upstream.port) == (destination_port, source_port)
    assert downstream.to_subnet == "172.16.11.2/32"


@pytest.mark.parametrize(("rate_bps", "delay_s"), [(10_000_000, 0.02), (1_000_000_000, 0.1), (100_000, 2.0)])
def test_the_limit_of_netem_is_at_least_twice_the_packets_that_its_delay_can_hold(
    rate_bps: int, delay_s: float
) -> None:
    (stage,) = _direction(_path_with(rate_bps=rate_bps, delay_s=delay_s), "down").stages
    smallest = rate_bps * delay_s / 8 / 54
    assert 2 * smallest + 2 * 100 <= stage.limit_packets <= 2 * smallest + 40_000


@pytest.mark.parametrize(("loss", "length"), [(0.01, 3.0), (0.2, 1.0), (0.001, 25.0)])
def test_loss_bursts_have_the_requested_mean_length_and_share(loss: float, length: float) -> None:
    states = loss_states(loss, length)
    assert states is not None
    begin, end = states
    assert 1 / end == pytest.approx(length)
    assert begin / (begin + end) == pytest.approx(loss)


def test_losses_are_independent_without_bursts() -> None:
    assert loss_states(0.01, None) is None
    assert "loss random 1%" in netem(_direction(PATHS["one-way"], "down").stages[0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"aqm": "bfifo"},
            "aqm bfifo counts bytes, not packets; accepted: a buffer in bytes",
        ),
        (
            {"buffer_packets": None, "buffer_bytes": 50_000},
            "pfifo counts packets, not bytes; accepted: a buffer in packets",
        ),
        ({"aqm": None}, "a rate without an aqm"),
        ({"jitter_s": 0.03}, r"jitter 30ms is more than the delay, 20ms; accepted: at most the delay"),
        ({"delay_s": 0.0, "reorder": 0.01}, "reorder without a delay.* accepted: a delay"),
        (
            {"loss_burst_packets": 0.5},
            "1% loss cannot come in bursts of 0.5 packets; accepted: 1 packets or more",
        ),
        (
            {"loss": 0.9, "loss_burst_packets": 2.0},
            "90.* cannot come in bursts of 2 packets; accepted: 9 packets",
        ),
        ({"aqm_parameters": {"limt": "3"}}, "unknown parameter 'limt'"),
        ({"aqm": "codel", "aqm_parameters": {"target": "5"}}, "5' has no unit"),
    ],
)
def test_an_impossible_path_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        _values(_path_with(**change))


@pytest.mark.parametrize(
    ("seconds", "shift", "printed"),
    [
        (0.005, 10, "5ms"),
        (0.00025, 10, "249us"),
        (0.0155, 10, "15.5ms"),
        (0.001, 6, "1ms"),
        (0.000333, 6, "332us"),
        (0.012345, 0, "12.3ms"),
        (1.5, 0, "1.5s"),
        (0.0, 0, "0us"),
    ],
)
def test_a_time_is_written_as_tc_prints_it(seconds: float, shift: int, printed: str) -> None:
    assert tc_time(seconds, shift) == printed


@pytest.mark.parametrize(
    ("size_bytes", "printed"),
    [(1514, "1514b"), (65536, "64Kb"), (131072, "128Kb"), (8_000_000, "8000000b"), (33554432, "32Mb")],
)
def test_a_size_is_written_as_tc_prints_it(size_bytes: int, printed: str) -> None:
    assert tc_size(size_bytes) == printed


def test_jitter_keeps_packets_in_order() -> None:
    (stage,) = _direction(_path_with(jitter_s=0.005), "down").stages
    assert netem(stage).endswith("delay 20000us 5000us loss random 1% rate 100gbit")
    assert netem(stage, shown=True).endswith("delay 20ms 5ms loss 1%")


def test_recipes_can_use_the_filter_u32() -> None:
    match = MatchPlan(from_subnet="fd00::/64", port=443)
    text = shell_environment(finalize=plain).from_string("{{ match | u32 }}").render(match=match)
    assert text == "prio 2 protocol ipv6 u32 match ip6 src fd00::/64 match ip6 dport 443 0xffff"


@pytest.mark.parametrize(("loss", "burst_packets"), [(0.9, 9), (0.8, 4), (0.75, 3), (0.6, 1.5)])
def test_loss_bursts_of_the_minimum_length_that_the_message_states_are_accepted(
    loss: float, burst_packets: float
) -> None:
    states = loss_states(loss, burst_packets)
    assert states is not None and states[0] <= 1.0
    assert states == pytest.approx((1.0, 1 / burst_packets))


@pytest.mark.parametrize(
    ("generator", "ports"),
    [("iperf3", (5001, None)), ("http", (None, 5001)), ("command", (None, None))],
)
def test_ports_are_moved_to_the_listening_end_only_in_matches_of_the_trial_s_flows(
    generator: str, ports: tuple[int | None, int | None]
) -> None:
    flow = RESOLVED.flows[0].model_copy(update={"generator": generator})
    resolved = RESOLVED.model_copy(update={"flows": (flow,)})
    own = MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=5001)
    others = own.model_copy(update={"port": 5002}), own.model_copy(update={"from_subnet": "172.16.10.3/32"})
    one = ClassPlan(match=(own, *others), delay_down_s=0.0, delay_up_s=0.0, loss=0.0)
    path = PATH.model_copy(update={"classes": (one,)})
    (made,) = match_servers(path, resolved, CATALOGUE).classes
    assert (made.match[0].port, made.match[0].from_port) == ports
    assert made.match[1:] == others
