"""Factors: levels in every form, ranges, excluded and included treatments, and the flows of an entry of traffic."""

import re
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from samovar.experiment import (
    Buffer,
    Directional,
    Distribution,
    Experiment,
    Formula,
    PerHost,
    keys,
    load_experiment,
    load_testbed,
    resolve_experiment,
)
from samovar.experiment.keys import Level, value_types
from samovar.experiment.keys.experiment_file import number_of
from samovar.experiment.keys.levels import Treatment, read_range, read_target
from samovar.experiment.layers.merge import merge_layers
from samovar.experiment.yaml_tree import parse_yaml
from samovar.plan import make_plan
from samovar.plan.resolve import matrix_of
from samovar.recipes import Catalogue
from samovar.units import split_quantity
from tests.unit.plans import CATALOGUE

ROOT = Path(__file__).parents[3]
DUMBBELL = load_testbed(ROOT / "hosts" / "dumbbell.yaml")
FLOW = "{flow: bulk, generator: iperf3, from: sender, to: receiver, duration: 5s}"


def part_of(text: str = "", flow: str = FLOW) -> keys.Part:
    """Return the only part of an experiment to which `text` adds keys."""
    tree, problems = parse_yaml(f"experiment: x\ntestbed: lab\ntraffic: [{flow}]\n{text}\n", "x.yaml")
    assert not problems
    return Experiment.model_validate(merge_layers([tree], [])).parts["main"]


def treatments(part: keys.Part) -> list[Treatment]:
    """Return the treatments of a part: all combinations of levels except the excluded ones, then the included ones."""
    factors, rows = matrix_of("main", part)
    return [
        {factor.name: factor.levels[level] for factor, level in zip(factors, row, strict=True)}
        for row in rows
    ]


def levels_of(spec: str, name: str = "cc") -> tuple[Level, ...]:
    return part_of(f"factors:\n  {name}: {spec}").factors[name].levels


@pytest.mark.parametrize(
    ("name", "spec", "level"),
    [
        ("cc", "cubic", Level("cubic", {"cc": "cubic"})),
        ("cc", "[cubic]", Level("cubic", {"cc": "cubic"})),
        ("cc", "{levels: [cubic]}", Level("cubic", {"cc": "cubic"})),
        ("path.buffer", "[1 BDP]", Level("1 BDP", {"path.buffer": "1 BDP"})),
        (
            "path.rate",
            "[{down: 100Mbit, up: 40Mbit}]",
            Level("100Mbit-40Mbit", {"path.rate": {"down": "100Mbit", "up": "40Mbit"}}),
        ),
        ("path.loss", "[{up: 1%}]", Level("1%", {"path.loss": {"up": "1%"}})),
        (
            "path.rate",
            "[{down: 100Mbit, up: 40Mbit, label: cable}]",
            Level("cable", {"path.rate": {"down": "100Mbit", "up": "40Mbit"}}),
        ),
        (
            "cc",
            "[{sender: cubic, sender2: cdg}]",
            Level("cubic-cdg", {"cc": {"sender": "cubic", "sender2": "cdg"}}),
        ),
        (
            "home",
            "[{path.rate: {down: 10Mbit, up: 1Mbit}, path.buffer: 1 BDP, rwnd: {receiver: 2 BDP}, label: dsl}]",
            Level(
                "dsl",
                {
                    "path.rate": {"down": "10Mbit", "up": "1Mbit"},
                    "path.buffer": "1 BDP",
                    "rwnd": {"receiver": "2 BDP"},
                },
            ),
        ),
        (
            "home",
            "[{path.rate: 10Mbit, rwnd: 50KB}]",
            Level("10Mbit-50KB", {"path.rate": "10Mbit", "rwnd": "50KB"}),
        ),
        ("ecn", "{levels: ['on'], sets: tcp.ecn}", Level("on", {"tcp.ecn": "on"})),
        (
            "ecn",
            "{levels: ['on'], sets: tcp.ecn, at: [sender, receiver]}",
            Level("on", {"tcp.ecn": {"sender": "on", "receiver": "on"}}),
        ),
        ("window", "{levels: [50KB], sets: [rwnd]}", Level("50KB", {"rwnd": "50KB"})),
        ("rwnd", "[{value: 50KB, label: 200KB}]", Level("200KB", {"rwnd": "50KB"})),
        (
            "udp",
            "{levels: [{value: 10Mbit, label: 40Mbit}], sets: [traffic.a.rate, traffic.b.rate]}",
            Level("40Mbit", {"traffic.a.rate": "10Mbit", "traffic.b.rate": "10Mbit"}),
        ),
        (
            "limit",
            "{levels: [{value: 5Mbit, label: 20Mbit}], sets: shaper.rate, at: sender}",
            Level("20Mbit", {"shaper.rate": {"sender": "5Mbit"}}),
        ),
        ("tcp.sack", "[no]", Level("no", {"tcp.sack": "no"})),
        ("txd", "[010, 1e3]", Level("010", {"txd": "010"})),
    ],
)
def test_a_level_keeps_its_values_as_written_and_has_a_label(name: str, spec: str, level: Level) -> None:
    assert levels_of(spec, name)[0] == level


def test_a_factor_may_set_a_key_at_some_hosts_only() -> None:
    factor = part_of("factors: {ecn: {levels: ['off'], sets: tcp.ecn, at: sender}}").factors["ecn"]
    assert (factor.at, factor.targets) == (("sender",), ("tcp.ecn",))


def test_a_factor_may_set_several_keys_at_once() -> None:
    factor = part_of(
        "factors: {both: {sets: [path.loss, path.jitter], levels: [{down: 1%, up: 2%}]}}"
    ).factors["both"]
    loss = {"down": "1%", "up": "2%"}
    assert factor.levels == (Level("1%-2%", {"path.loss": loss, "path.jitter": loss}),)
    ranged = levels_of("{sets: [rwnd, traffic.bulk.size], levels: {from: 50KB, to: 100KB, step: 50KB}}", "kb")
    assert ranged[1] == Level("100KB", {"rwnd": "100KB", "traffic.bulk.size": "100KB"})


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        ("{from: 50KB, to: 200KB, step: 50KB}", "50KB 100KB 150KB 200KB"),
        ("{from: 0.5MB, to: 1MB, step: 250KB}", "0.5MB 0.75MB 1MB"),
        ("{from: 1min, to: 1.5min, step: 10s}", "60s 70s 80s 90s"),
        ("{from: 0%, to: 0.3%, step: 0.1%}", "0% 0.1% 0.2% 0.3%"),
    ],
)
def test_a_range_includes_its_ends_and_its_levels_are_written_in_one_unit(written: str, texts: str) -> None:
    tree, _ = parse_yaml(f"x: {written}\n", "x.yaml")
    assert " ".join(read_range(tree["x"])) == texts  # type: ignore[arg-type]


@given(st.integers(0, 10**6), st.integers(1, 10**4), st.integers(1, 60), st.integers(0, 4))
def test_the_levels_of_a_range_are_computed_without_rounding(
    start: int, step: int, count: int, places: int
) -> None:
    scale = Decimal(1).scaleb(-places)
    texts = [f"{number * scale:f}KB" for number in (start, start + count * step, step)]
    found = read_range(dict(zip(("from", "to", "step"), texts, strict=True)))
    numbers = [(split_quantity(text) or (Decimal(-1), "", None))[0] for text in found]
    assert numbers == [(start + index * step) * scale for index in range(count + 1)]


def test_a_factor_has_at_most_a_thousand_levels() -> None:
    many = "[" + ", ".join(map(str, range(1500, 2501))) + "]"
    with pytest.raises(ValidationError, match="1001 levels; expected at most 1000"):
        part_of(f"factors: {{mtu: {many}}}")


def test_excluded_treatments_are_left_out_and_included_ones_come_last() -> None:
    part = part_of(
        "factors: {cc: [cubic, cdg], mtu: [600, 1200, 1500]}\n"
        "exclude: [{cc: cdg, mtu: [600, 1200]}, {mtu: 1200}]\n"
        "include: [{mtu: 1500, cc: bbr}, {cc: cdg, mtu: 600}]"
    )
    found = [" ".join(level.label for level in one.values()) for one in treatments(part)]
    assert found == ["cubic 600", "cubic 1500", "cdg 1500", "bbr 1500", "cdg 600"]


def test_a_label_in_an_include_line_means_the_level_with_that_label() -> None:
    part = part_of(
        "factors: {home: [{path.rate: 1Mbit, label: slow}, {path.rate: 9Mbit, label: fast}], cc: [cdg]}\n"
        "include: [{home: fast, cc: bbr}, {home: {path.rate: 99Mbit, label: new}, cc: bbr}]"
    )
    added = [one["home"].texts["path.rate"] for one in treatments(part)][2:]
    assert added == ["9Mbit", "99Mbit"]


def test_a_value_of_a_level_has_the_type_of_the_key_that_it_sets() -> None:
    assert read_target("path.rate", {"down": "1Mbit", "up": "2Mbit"}) == Directional(1_000_000, 2_000_000)
    assert read_target("rwnd", PerHost({"dst": "50KB"})) == PerHost({"dst": 50_000})
    assert read_target("path.buffer", "10packets") == Buffer(10, None)
    assert read_target("traffic.bulk.count", "4") == 4
    assert read_target("traffic.bulk.dscp", "AF41") == 34
    assert read_target("path.loss_burst", "3packets") == 3
    assert isinstance(read_target("duration", "20 RTT"), Formula)
    assert read_target("loggers.queue.interval", "1ms") == 0.001


def test_a_loaded_level_has_typed_values() -> None:
    (level,) = levels_of("[{path.rate: 8Mbit, path.buffer: 1 BDP, tcp.sack: 'on', label: dsl}]", "home")
    assert (level.values["path.rate"], level.values["tcp.sack"]) == (8_000_000, "on")
    assert isinstance(level.values["path.buffer"], Formula)


def test_the_error_of_an_invalid_level_is_stored_in_place_of_its_value() -> None:
    (level,) = levels_of("[{path.rate: 8MB, path.rtt: 5ms}]", "home")
    assert dict(level.texts) == {"path.rate": "8MB", "path.rtt": "5ms"}
    assert str(level.values["path.rate"]) == "'8MB' is a size; expected a rate such as 40Mbit"
    assert level.values["path.rtt"] == 0.005


def test_a_path_has_values_for_both_directions() -> None:
    path = part_of(
        "path:\n  rate: {down: 40Mbit, up: 8Mbit}\n  delay: {down: 20ms, up: 5ms}\n  loss: {up: 1%}\n"
        "  jitter: 1ms\n  loss_burst: 3packets\n  reorder: 0.1%\n  duplicate: {down: 1%, up: 2%}\n"
        "  aqm: {down: codel, up: pfifo}\n  buffer: 2 * BDP + 10packets\n"
        "  classes: [{flow: bulk, rtt: 5ms}, {from: 172.16.10.0/24, to: receiver, delay: {down: 1ms, up: 2ms}, loss: 1%}]"
    ).path
    assert path is not None
    assert (path.rate_bps, path.delay_s) == (Directional(40_000_000, 8_000_000), Directional(0.02, 0.005))
    assert (path.loss, path.jitter_s, path.loss_burst_packets) == (Directional(None, 0.01), 0.001, 3)
    assert (path.reorder, path.duplicate) == (0.001, Directional(0.01, 0.02))
    assert path.aqm == Directional("codel", "pfifo")
    assert str(path.buffer) == "2 * BDP + 10packets"
    assert [(one.flow, one.from_end, one.to_end) for one in path.classes] == [
        ("bulk", None, None),
        (None, "172.16.10.0/24", "receiver"),
    ]


def test_the_keys_of_a_flow_are_typed() -> None:
    (flow,) = part_of(
        flow="{flow: web, generator: iperf3, from: senders, to: receiver, size: 1 BDP, start: {uniform: [0s, 5s]}, "
        "cc: cubic, rwnd: 200KB, dscp: EF, count: 4, every: 10s, length: 8KB}"
    ).traffic
    assert (flow.start_s, flow.count, flow.every_s) == (Distribution("uniform", (0.0, 5.0)), 4, 10.0)
    assert (flow.cc, flow.rwnd_bytes, flow.dscp) == ("cubic", 200_000, 46)
    assert flow.size_bytes == value_types.SIZE_OR_FORMULA.parse("1 BDP")
    assert flow.parameters == {"length": "8KB"}


def test_arrivals_and_stops_are_read_with_their_units() -> None:
    flow = "{flow: web, generator: iperf3, from: sender, to: receiver, size: 1MB, arrivals: {poisson: 30/min, until: 60s}}"
    part = part_of("stop: {after: 100 RTT, when: web}", flow)
    arrivals, stop = part.traffic[0].arrivals, part.stop
    assert arrivals is not None and (arrivals.poisson_per_s, arrivals.until_s, arrivals.count) == (
        0.5,
        60.0,
        None,
    )
    assert stop is not None and (str(stop.after_s), stop.when) == ("100 RTT", "web")


def test_a_setting_has_one_value_for_all_hosts_or_a_value_per_host_or_role() -> None:
    assert part_of("settings: {cc: cubic, mtu: {sender: 1500, router: 9000}, tcp.sack: off}").settings == {
        "cc": "cubic",
        "mtu": PerHost({"sender": "1500", "router": "9000"}),
        "tcp.sack": "off",
    }


@pytest.mark.parametrize(
    ("flow", "expected"),
    [
        ("from: sender, to: receiver", ["bulk src1 dst1 None"]),
        ("from: sender, to: receiver, count: 1, port: 80", ["bulk-1 src1 dst1 80"]),
        (
            "from: src2, to: receiver, count: 2, port: 80",
            ["bulk-1 src2 dst1 80", "bulk-2 src2 dst1 81"],
        ),
        (
            "from: senders, to: receiver",
            [
                "bulk-1 src1 dst1 None",
                "bulk-2 src2 dst1 None",
                "bulk-3 src3 dst1 None",
                "bulk-4 src4 dst1 None",
            ],
        ),
        (
            "from: senders, to: receivers, count: 5",
            [
                "bulk-1 src1 dst1 None",
                "bulk-2 src2 dst2 None",
                "bulk-3 src3 dst3 None",
                "bulk-4 src4 dst4 None",
                "bulk-5 src1 dst1 None",
            ],
        ),
        ("from: sender, to: receivers, count: 2", ["bulk-1 src1 dst1 None", "bulk-2 src1 dst2 None"]),
    ],
)
def test_the_number_of_flows_of_an_entry_is_its_count_or_its_number_of_hosts(
    flow: str, expected: list[str]
) -> None:
    (line,) = part_of(flow=f"{{flow: bulk, generator: iperf3, duration: 1s, {flow}}}").traffic
    found = [
        f"{one.label} {one.from_host} {one.to_host} {one.port}" for one in keys.members_of(line, DUMBBELL)
    ]
    assert found == expected


def test_an_entry_with_arrivals_makes_one_flow_for_each_random_arrival() -> None:
    (line,) = part_of(
        flow="{flow: web, generator: iperf3, from: sender, to: receiver, size: 1KB, arrivals: {poisson: 1/s, until: 9s}}"
    ).traffic
    assert number_of(line, DUMBBELL) == 1
    assert [one.label for one in keys.members_of(line, DUMBBELL, 3)] == ["web-1", "web-2", "web-3"]


def test_a_plural_role_means_all_hosts_with_that_role_and_a_singular_role_the_first() -> None:
    assert keys.hosts_of(DUMBBELL, "senders") == ("src1", "src2", "src3", "src4")
    assert (keys.hosts_of(DUMBBELL, "sender"), keys.hosts_of(DUMBBELL, "dst2")) == (("src1",), ("dst2",))
    assert (keys.hosts_of(DUMBBELL, "observers"), keys.hosts_of(DUMBBELL, "hosts")) == ((), ())


def test_a_parameter_of_a_recipe_may_be_a_formula() -> None:
    tree, _ = parse_yaml(
        "experiment: x\ntestbed: dumbbell\nduration: 5s\n"
        "path: {rate: 8Mbit, rtt: 20ms, buffer: 1 BDP, aqm: codel, target: RTT / 4}\n"
        "factors: {path.interval: [100ms, 6 RTT]}\n"
        f"traffic: [{FLOW}]\n",
        "x.yaml",
    )
    experiment = Experiment.model_validate(merge_layers([tree], [])).with_tree(tree)
    paths = [
        trial.resolved.path for trial in make_plan(resolve_experiment(experiment, DUMBBELL), CATALOGUE).trials
    ]
    found = [path.down.aqm_parameters for path in paths if path is not None]
    for interval in ("100ms", "120ms"):
        assert {"target": "5ms", "interval": interval} in found


@pytest.mark.parametrize("number", [0, 1, 2])
def test_an_example_of_the_reference_is_valid(number: int, tmp_path: Path) -> None:
    reference = (ROOT / "docs" / "reference" / "experiment.md").read_text(encoding="utf-8")
    example = re.findall(r"```yaml\n(.*?)```", reference, re.DOTALL)[number]
    given = {line.split(":")[0] for line in example.splitlines()}
    rest = {
        "path": "{rate: 40Mbit, rtt: 20ms, buffer: 1 BDP, aqm: bfifo}",
        "duration": "9s",
        "traffic": f"[{FLOW[:-15]}}}]",
    }
    text = example + "".join(f"{key}: {value}\n" for key, value in rest.items() if key not in given)
    (tmp_path / "study.yaml").write_text(f"experiment: study\ntestbed: dumbbell\n{text}", encoding="utf-8")
    experiment = load_experiment(tmp_path / "study.yaml", Catalogue(ROOT / "templates"), DUMBBELL)
    assert make_plan(experiment, CATALOGUE).trials


def test_every_key_of_an_experiment_has_a_description() -> None:
    from samovar.experiment.keys import (
        Arrivals,
        Capture,
        Expect,
        Flow,
        Logger,
        NetworkPath,
        Order,
        PathClass,
        Stop,
    )

    models = (
        Arrivals,
        Capture,
        Expect,
        Experiment,
        Flow,
        Logger,
        NetworkPath,
        Order,
        keys.Part,
        PathClass,
        Stop,
    )
    undescribed = [
        f"{model.__name__}.{name}"
        for model in models
        for name, field in model.model_fields.items()
        if not field.description
    ]
    assert undescribed == []
