"""`samovar import teacup`: a configuration is read, not executed, and becomes an experiment that can be planned."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from samovar.cli.commands import run_commands
from samovar.cli.project import Project, Request
from samovar.errors import SamovarError
from samovar.experiment import yaml_tree
from samovar.plan import Plan
from samovar.teacup import import_config
from samovar.teacup.variables import NOTHING, VARIABLES, Counterpart

EVERY = Path(__file__).with_name("every-variable.txt")
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "come-from-teacup.md"
SMALL = """
TPCONF_router = ['gw']
TPCONF_hosts = ['a', 'b']
TPCONF_host_internal_ip = {'gw': ['172.16.10.1', '172.16.11.1'], 'a': ['172.16.10.2'], 'b': ['172.16.11.2']}
TPCONF_router_queues = [QUEUES]
TPCONF_duration = 10
TPCONF_runs = 1
TPCONF_traffic_gens = [TRAFFIC]
TPCONF_parameter_list = {PARAMETERS}
TPCONF_variable_defaults = {'V_duration': 10, 'V_delay': 10, 'V_rate': '8mbit', 'V_bsize': 100, 'V_aqm': 'pfifo'}
TPCONF_vary_parameters = [VARIED]
"""
QUEUE = (
    "('1', \"source='172.16.10.0/24', dest='172.16.11.0/24', delay=V_delay, rate=V_rate, queue_disc=V_aqm, "
    'queue_size=V_bsize")'
)
BACK = QUEUE.replace("'1'", "'2'").replace("10.0", "x").replace("11.0", "10.0").replace("x", "11.0")
CDG = "TPCONF_host_os = {'a': 'FreeBSD'}\nTPCONF_variable_defaults['V_tcp_cc_algo'] = 'cdg'\n"
IPERF = "('0.0', '1', \"start_iperf, client='a', server='b', port=5000, duration=V_duration\")"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "experiments").mkdir()
    (tmp_path / "config.yaml").write_text("testbed: lab\n")
    return tmp_path


def import_text(project: Path, text: str, name: str = "mine") -> int:
    (project / f"{name}.py").write_text(text)
    return run_commands(["import", "teacup", str(project / f"{name}.py")], project)


def small_configuration(
    queues: str = QUEUE, traffic: str = IPERF, parameters: str = "", varied: str = "", more: str = ""
) -> str:
    text = SMALL.replace("QUEUES", queues).replace("TRAFFIC", traffic)
    return text.replace("PARAMETERS", parameters).replace("VARIED", varied) + more


def plan_of(project: Path, name: str = "mine") -> Plan:
    return Project(project).plan(Request(name)).plan


def test_a_configuration_with_every_variable_has_as_many_trials_as_in_teacup(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_commands(["import", "teacup", str(EVERY)], project) == 0
    printed = capsys.readouterr().out
    assert "trials: 128 in TEACUP, 128 in samovar" in printed
    assert len(plan_of(project, "every-variable").trials) == 128
    shown = {line.split()[0] for line in printed.splitlines() if line.startswith(("TPCONF_", "env."))}
    known = VARIABLES.keys()
    assert {name for name in known if name not in shown} == set()
    assert "not a variable of TEACUP" not in printed


def test_values_that_depend_on_a_varied_parameter_are_levels_of_its_factor(project: Path) -> None:
    run_commands(["import", "teacup", str(EVERY)], project)
    trials = plan_of(project, "every-variable").trials
    found = {
        (
            path.down.delay_s,
            path.classes[0].delay_down_s,
            trial.resolved.hosts["hostB"].settings["command"]["run"],
        )
        for trial in trials
        if (path := trial.resolved.path)
    }
    commands = "echo {} > /tmp/delay && touch /tmp/been-here"
    assert found == {(0.005, 0.01, commands.format(5)), (0.025, 0.05, commands.format(25))}
    cc = {tuple(host.cc for host in trial.resolved.hosts.values()) for trial in trials}
    assert {one[1:3] for one in cc} == {("newreno", "newreno"), ("cdg", "htcp")}
    parameters = {
        (host.cc, str(host.cc_parameters.get("beta_delay")))
        for host in (trial.resolved.hosts["hostA"] for trial in trials)
    }
    assert parameters == {("newreno", "None"), ("cdg", "0.7")}


@pytest.mark.parametrize(("system", "cc"), [("Linux", "cubic"), ("FreeBSD", "newreno")])
def test_without_a_variable_senders_have_the_congestion_control_that_teacup_sets(
    project: Path, system: str, cc: str
) -> None:
    assert import_text(project, small_configuration(more=f"TPCONF_host_os = {{'a': '{system}'}}\n")) == 0
    assert plan_of(project).trials[0].resolved.hosts["a"].cc == cc


def test_a_parameter_of_a_congestion_control_may_be_an_expression(project: Path) -> None:
    parameter = "net.inet.tcp.cc.cdg.beta_delay = V_delay * 2"
    more = f"{CDG}TPCONF_host_TCP_algo_params = {{'a': {{'cdg': ['{parameter}']}}}}\n"
    assert import_text(project, small_configuration(more=more)) == 0
    hosts = plan_of(project).trials[0].resolved.hosts
    assert dict(hosts["a"].cc_parameters) == {"beta_delay": "20"}


def test_no_password_is_written_or_printed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_commands(["import", "teacup", str(EVERY)], project)
    printed = "".join(capsys.readouterr())
    written = "".join(path.read_text() for path in project.rglob("*.yaml"))
    assert len(list(project.rglob("every-variable.yaml"))) == 2
    assert "not-to-be-written" not in printed + written


def test_an_existing_file_is_not_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "hosts").mkdir()
    (project / "hosts" / "mine.yaml").write_text("testbed: mine\n")
    assert import_text(project, small_configuration()) == 1
    assert "exists already; import under another name with --name" in capsys.readouterr().err
    assert (project / "hosts" / "mine.yaml").read_text() == "testbed: mine\n"
    assert list((project / "experiments").iterdir()) == []


def test_the_command_import_teacup_may_also_be_written_with_a_dot(project: Path) -> None:
    (project / "mine.py").write_text(small_configuration())
    assert run_commands(["import.teacup", str(project / "mine.py"), "--name", "other"], project) == 0
    assert (project / "experiments" / "other.yaml").is_file()


def test_extra_values_of_a_varied_parameter_override_the_defaults(project: Path) -> None:
    parameters = "'d': (['V_delay'], ['d'], [10, 20], {'V_rate': '2mbit'}), 'e': (['V_e'], ['e'], [1], {'V_rate': '3mbit'})"
    assert import_text(project, small_configuration(parameters=parameters, varied="'d'")) == 0
    paths = [path for trial in plan_of(project).trials if (path := trial.resolved.path)]
    assert {(path.down.delay_s, path.down.rate_bps) for path in paths} == {(0.01, 2e6), (0.02, 2e6)}


def test_a_parameter_named_like_a_column_of_tables_becomes_a_factor_of_another_name(project: Path) -> None:
    parameter = "'both': (['V_delay', 'V_rate'], ['n'], [(10, '1mbit'), (20, '2mbit')], {})"
    assert import_text(project, small_configuration(parameters=parameter, varied="'both'")) == 0
    assert [trial.treatment for trial in plan_of(project).trials] == [
        {"n-levels": "10-1mbit"},
        {"n-levels": "20-2mbit"},
    ]


def test_a_value_that_depends_on_two_parameters_becomes_one_factor_of_their_combinations(
    project: Path,
) -> None:
    parameters = (
        "'a': (['V_aqm'], ['aqm'], ['pfifo', 'bfifo'], {}), 'b': (['V_bsize'], ['bs'], [100, 50000], {}), "
        "'runs': (['V_runs'], ['run'], range(3), {})"
    )
    assert import_text(project, small_configuration(parameters=parameters, varied="'a', 'b', 'runs'")) == 0
    trials = plan_of(project).trials
    assert len(trials) == 12
    sizes = {
        (path.down.aqm, path.down.buffer_packets, path.down.buffer_bytes)
        for trial in trials
        if (path := trial.resolved.path)
    }
    assert sizes == {
        ("pfifo", 100, None),
        ("pfifo", 50000, None),
        ("bfifo", None, 100),
        ("bfifo", None, 50000),
    }


@pytest.mark.parametrize(
    ("size", "packets"),
    [
        ("'bdp'", 33),
        ("'bdp', queue_size_mult=2, avg_packet_size=1500", 27),
        ("'bdp', rtt=60", 100),
        ("''", 1000),
    ],
)
def test_a_queue_of_a_bandwidth_delay_product_is_a_formula(project: Path, size: str, packets: int) -> None:
    queue = QUEUE.replace("queue_size=V_bsize", f"queue_size={size}")
    back = BACK.replace("queue_size=V_bsize", f"queue_size={size}")
    assert import_text(project, small_configuration(queues=f"{queue}, {back}")) == 0
    path = plan_of(project).trials[0].resolved.path  # 8 Mbit/s times 20 ms are 20,000 bytes, or 33.3 packets
    assert path is not None
    assert (path.down.buffer_packets, path.up.buffer_packets) == (packets, packets)


def test_a_freebsd_router_has_a_queue_of_one_bandwidth_delay_product(project: Path) -> None:
    queue = QUEUE.replace("V_bsize", "'bdp'").replace("V_rate", "8000000")
    assert (
        import_text(project, small_configuration(queues=queue, more="TPCONF_host_os = {'gw': 'FreeBSD'}\n"))
        == 0
    )
    path = plan_of(project).trials[0].resolved.path  # 20,000 bytes, or 13.3 packets of 1500 bytes
    assert path is not None
    assert path.down.buffer_packets == 13


def test_a_bandwidth_delay_product_has_twice_the_delay_of_its_own_queue(project: Path) -> None:
    queue = QUEUE.replace("queue_size=V_bsize", "queue_size='BDP'")
    back = BACK.replace("queue_size=V_bsize", "queue_size='BDP'")
    assert import_text(project, small_configuration(queues=queue), "single") == 0
    path = plan_of(project, "single").trials[0].resolved.path
    assert path is not None
    assert path.down.buffer_packets == 33
    mixed = f"{queue.replace('V_delay', '60')}, {back.replace('V_delay', '0')}"
    assert import_text(project, small_configuration(queues=mixed), "mixed") == 0
    path = plan_of(project, "mixed").trials[0].resolved.path
    assert path is not None
    assert (path.down.buffer_packets, path.up.buffer_packets) == (200, 1)


@pytest.mark.parametrize(
    ("system", "arguments", "queue"),
    [
        ("Linux", "rate='1000kbps', queue_size=9", ("pfifo", 8e6, 9, None)),
        ("FreeBSD", "rate='8m', queue_disc='fifo'", ("pfifo", 8e6, 50, None)),
        ("FreeBSD", "rate='8m', queue_disc='fifo', queue_size='20Kbytes'", ("bfifo", 8e6, None, 20480)),
        ("Linux", "rate='8mbit', queue_disc='bfifo', queue_size='30kb'", ("bfifo", 8e6, None, 30720)),
    ],
)
def test_rates_and_queues_have_the_units_and_defaults_of_tc_and_ipfw(
    project: Path, system: str, arguments: str, queue: tuple[str, float, int | None, int | None]
) -> None:
    written = QUEUE.partition("rate=")[0] + arguments + '")'
    assert (
        import_text(
            project, small_configuration(queues=written, more=f"TPCONF_host_os = {{'gw': '{system}'}}\n")
        )
        == 0
    )
    path = plan_of(project).trials[0].resolved.path
    assert path is not None
    down = path.down
    assert (down.aqm, down.rate_bps, down.buffer_packets, down.buffer_bytes) == queue


def test_in_a_direction_without_an_entry_for_a_class_the_class_has_the_delay_of_the_queue(
    project: Path,
) -> None:
    ends = "source='172.16.10.2', dest='172.16.11.0/24'"
    own = f"('3', \"{ends}, delay=2*V_delay, attach_to_queue='1'\")"
    assert import_text(project, small_configuration(queues=f"{QUEUE}, {BACK}, {own}")) == 0
    path = plan_of(project).trials[0].resolved.path
    assert path is not None
    assert [(one.delay_down_s, one.delay_up_s) for one in path.classes] == [(0.02, 0.01)]


def test_the_destination_of_a_queue_may_be_every_address(project: Path) -> None:
    queues = [one.replace("172.16.11.0/24", "0.0.0.0/0") for one in (QUEUE, BACK)]
    assert import_text(project, small_configuration(queues=", ".join(queues))) == 0
    path = plan_of(project).trials[0].resolved.path
    assert path is not None
    assert (path.down.interface, path.up.interface) == ("eth2", "eth1")


def test_the_last_queue_that_matches_in_teacup_is_the_first_class(project: Path) -> None:
    every = "('3', \"source='172.16.10.0/24', dest='172.16.11.0/24', delay=30, attach_to_queue='1'\")"
    one = "('4', \"source='a', dest='b', delay=70, attach_to_queue='1'\")"
    assert import_text(project, small_configuration(queues=f"{QUEUE}, {BACK}, {every}, {one}")) == 0
    path = plan_of(project).trials[0].resolved.path
    assert path is not None
    assert [found.delay_down_s for found in path.classes] == [0.07, 0.03]


@pytest.mark.parametrize(
    ("system", "aqm", "written", "parameters"),
    [
        ("Linux", "codel", "target 2ms noecn", {"target": "2ms", "ecn": "off"}),
        ("Linux", "fq_codel", "flows 512 quantum 300 interval 90000", {"flows": "512", "quantum": "300B", "interval": "90000us"}),
        ("Linux", "red", "min 30000 max 90000 burst 55 probability 0.05 adaptive ecn", {"min": "30KB", "max": "90KB", "burst": "55packets", "probability": "5%", "adaptive": "on", "ecn": "on"}),
        ("FreeBSD", "codel", "target 2", {"target": "2ms"}),
    ],
)  # fmt: skip
def test_parameters_of_a_queue_discipline_are_keys_of_the_path(
    project: Path, system: str, aqm: str, written: str, parameters: dict[str, str]
) -> None:
    both = QUEUE.replace("queue_disc=V_aqm", f"queue_disc='{aqm}', queue_disc_params='{written}', bidir='1'")
    assert (
        import_text(
            project, small_configuration(queues=both, more=f"TPCONF_host_os = {{'gw': '{system}'}}\n")
        )
        == 0
    )
    path = plan_of(project).trials[0].resolved.path
    assert path is not None
    assert (dict(path.down.aqm_parameters), dict(path.up.aqm_parameters)) == (parameters, parameters)


def test_each_level_of_a_queue_discipline_has_its_own_parameters(project: Path) -> None:
    queue = QUEUE.replace("queue_disc=V_aqm", "queue_disc=V_aqm, queue_disc_params=V_par")
    levels = "[('pfifo', ''), ('fq_codel', 'target 2ms'), ('codel', 'target 3ms')]"
    parameters = f"'a': (['V_aqm', 'V_par'], ['aqm', 'p'], {levels}, {{}})"
    assert import_text(project, small_configuration(queues=queue, parameters=parameters, varied="'a'")) == 0
    found = {
        path.down.aqm: dict(path.down.aqm_parameters)
        for trial in plan_of(project).trials
        if (path := trial.resolved.path)
    }
    assert found == {"pfifo": {}, "fq_codel": {"target": "2ms"}, "codel": {"target": "3ms"}}


@pytest.mark.parametrize(
    ("entry", "flow"),
    [
        ("start_iperf, client='a', server='b', port=5000, proto='udp', rate='10m', duration=3", ("iperf-udp", "a", "b", {"rate": "10Mbit", "length": "1470B"})),
        ("start_iperf, client='a', server='b', port=5000, mss=1000, buf_size='64k', duration=3", ("iperf", "a", "b", {"mss": "1KB", "socket_buffer": "65.536KB"})),
        ("start_ping, client='a', dest='b', rate=10, duration=3", ("ping", "a", "b", {"interval": "100ms"})),
        ("start_nttcp, client='a', server='b', port=9000, interval=20, psize=1000, duration=3", ("iperf-udp", "a", "b", {"rate": "400Kbit", "length": "1KB"})),
        ("start_httperf, client='a', server='b', port=80, period='0.5'", ("http", "b", "a", {"period": "500ms"})),
        ("start_httperf_dash, client='a', server='b', port=80, duration=3, rate=500, cycle=5, prefetch=2", ("dash", "b", "a", {"rate": "500Kbit", "cycle": "5s", "prefetch": "2s"})),
        ("start_httperf_incast, client='a', servers='b:80', duration=3, period=1, response_size=64", ("incast", "b", "a", {"period": "1s", "response": "65.536KB"})),
        ("start_fps_game, clients='a:27960', server='b:27961', c2s_psize=60, duration=3", ("game", "a", "b", {"length": "60B"})),
        ("start_custom_traffic, hostname='a', name='mytool', parameters='-t 3', duration=3", ("command", "a", "b", {"run": "mytool -t 3"})),
    ],
)  # fmt: skip
def test_each_traffic_generator_of_teacup_becomes_a_flow(
    project: Path, entry: str, flow: tuple[str, str, str, dict[str, str]]
) -> None:
    traffic = f"('0.0', '1', \"{entry}\")"
    assert import_text(project, small_configuration(traffic=traffic)) == 0
    (found,) = plan_of(project).trials[0].resolved.flows
    assert (found.generator, found.from_host, found.to_host, dict(found.parameters)) == flow


def test_a_command_may_depend_on_a_parameter(project: Path) -> None:
    command = "start_custom_traffic, hostname='a', name='tool', parameters='-n %s' % V_flows, duration=3"
    more = (
        f"TPCONF_traffic_gens = [('0', '1', {command!r})]\n"
        "TPCONF_parameter_list = {'flows': (['V_flows'], ['flows'], [1, 2], {})}\n"
    )
    assert import_text(project, small_configuration(varied="'flows'", more=more)) == 0
    runs = [dict(flow.parameters)["run"] for one in plan_of(project).trials for flow in one.resolved.flows]
    assert runs == ["tool -n 1", "tool -n 2"]


def test_a_configuration_without_usable_traffic_is_refused_with_the_first_reason(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = "('0', '1', \"start_iperf, client='a', server='b', port=1, rate=100M\")"
    assert import_text(project, small_configuration(traffic=traffic)) == 1
    assert "TPCONF_traffic_gens[0]:1:55: not Python" in " ".join(capsys.readouterr().err.split())


def test_the_arguments_of_an_entry_may_end_with_a_comma(project: Path) -> None:
    queue = QUEUE.replace("queue_size=V_bsize", "queue_size=V_bsize, ")
    traffic = IPERF.replace("'0.0'", "'2.5'").replace("duration=V_duration", "duration=V_duration,")
    assert import_text(project, small_configuration(queues=queue, traffic=traffic)) == 0
    resolved = plan_of(project).trials[0].resolved
    assert resolved.path is not None and resolved.path.down.rate_bps == 8_000_000
    assert [flow.start_s for flow in resolved.flows] == [2.5]


def test_a_level_without_parameters_of_a_queue_discipline_has_their_defaults(project: Path) -> None:
    queue = QUEUE.replace("queue_disc=V_aqm", "queue_disc='fq_codel', queue_disc_params=V_params")
    parameters = "'x': (['V_params'], ['par'], ['', 'target 20ms', 'target 40ms noecn'], {})"
    assert import_text(project, small_configuration(queues=queue, parameters=parameters, varied="'x'")) == 0
    found = [
        (trial.treatment["par"], trial.resolved.path.down.aqm_parameters)
        for trial in plan_of(project).trials
        if trial.resolved.path
    ]
    assert [(label, own["target"], own["ecn"]) for label, own in found] == [
        ("default", "5ms", "on"),
        ("target 20ms", "20ms", "on"),
        ("target 40ms noecn", "40ms", "off"),
    ]


def test_a_level_of_teacup_that_sets_no_value_is_left_out(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = IPERF.replace("port=5000", "port=5000, buf_size=V_buffer")
    parameters = "'x': (['V_buffer'], ['buf'], ['', '64k', '1m'], {})"
    assert (
        import_text(project, small_configuration(traffic=traffic, parameters=parameters, varied="'x'")) == 0
    )
    assert "buf default: it sets no value, but a level in samovar must set one" in capsys.readouterr().out
    assert len(plan_of(project).ids) == 2


def test_the_port_of_a_game_is_that_of_its_server(project: Path) -> None:
    entry = "start_fps_game, clients='a:27960', server='b:27961', duration=3"
    assert import_text(project, small_configuration(traffic=f"('0.0', '1', \"{entry}\")")) == 0
    assert [flow.port for flow in plan_of(project).trials[0].resolved.flows] == [27961]


def test_an_incast_of_n_servers_has_a_flow_from_each_of_the_first_n(project: Path) -> None:
    arguments = (
        "client='a', servers='b, c,d', num_responders=2, server_port_start='8081', period=1, response_size=64"
    )
    more = "TPCONF_hosts = ['a', 'b', 'c', 'd']\nTPCONF_host_internal_ip['c'] = ['172.16.11.3']\n"
    text = small_configuration(traffic=f"('0.0', '1', \"start_httperf_incast_n, {arguments}\")", more=more)
    assert import_text(project, text) == 0
    flows = plan_of(project).trials[0].resolved.flows
    found = [(one.generator, one.from_host, one.to_host, one.port) for one in flows]
    assert found == [("incast", "b", "a", 8081), ("incast", "c", "a", 8082)]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (small_configuration(traffic=IPERF + ", ('0', '2', \"start_teleport, client='a'\")"), "start_teleport (id 2): has no counterpart in samovar"),
        (small_configuration(traffic=IPERF + ", ('0', '2', \"start_iperf, client='zz', server='b'\")"), "zz is not one of TPCONF_hosts"),
        (small_configuration(traffic=IPERF + ", ('0', '2', \"start_iperf, client=(\")"), "not Python"),
        (small_configuration(traffic=IPERF.replace("port=5000", "port=5000, proto='udp', buf_size='64k'")), "start_iperf: buf_size has no counterpart"),
        (small_configuration(traffic=IPERF.replace("port=5000", "port=5000, proto=V_proto"), parameters="'x': (['V_proto', 'V_delay'], ['x', 'd'], [('tcp', 1), ('udp', 2)], {})", varied="'x'"), "start_iperf (id 1): proto cannot vary; it has its default value"),
        (small_configuration(more=CDG + "TPCONF_host_TCP_algo_params = {'a': {'compound': ['net.inet.tcp.cc.cdg.alpha_inc = 1']}}\n"), "compound is not a congestion control of Linux or FreeBSD"),
        (small_configuration(more=CDG + "TPCONF_host_TCP_algo_params = {'a': {'cdg': ['net.inet.tcp.cc.cdg.alpha_inc = 1 +']}}\n"), "TPCONF_host_TCP_algo_params: a: net.inet.tcp.cc.cdg.alpha_inc:1:"),
        (small_configuration(more="TPCONF_host_TCP_algo_params = {'b': {'cdg': ['net.inet.tcp.cc.cdg.alpha_inc = 1']}}\n"), "b: net.inet.tcp.cc.cdg.alpha_inc: no flow sends from this host"),
        (small_configuration(more="TPCONF_host_TCP_algo_params = {'a': {'cubic': ['net.ipv4.tcp_frto = 0']}}\n"), "a: net.ipv4.tcp_frto: set it with tcp.<parameter> or command.run"),
        (small_configuration(queues=QUEUE + ", " + QUEUE.replace("'1', ", "'2', ", 1)), "one queue in each direction"),
        (small_configuration(queues=QUEUE.replace("V_aqm", "'codel', queue_disc_params='target 2ms'") + ", " + BACK.replace("V_aqm", "'codel'")), "path.target: differs between the directions"),
        (small_configuration(queues=f"{QUEUE}, {BACK}, ('3', \"source='b', dest='a', delay=20, loss=0.05, attach_to_queue='2'\")"), "queue 3: a class has no upstream loss of its own; the path's applies"),
        (small_configuration(more=f"TPCONF_router += ['gw2']\nTPCONF_host_internal_ip['gw2'] = ['172.16.10.3', '172.16.11.3']\nTPCONF_router_queues = {{'gw': [{QUEUE}], 'gw2': [{BACK}]}}\n"), "TPCONF_router_queues: gw2: only gw becomes the bottleneck"),
        (small_configuration(queues=QUEUE.replace("dest='172.16.11.0/24'", "dest='10.0.0.0/8'")), "no interface to each end of the"),
        (small_configuration(parameters="'x': (['V_x'], ['x'], [1, 2], {})", varied="'x'"), "changes nothing that could be translated"),
        (small_configuration(parameters="'x': (['V_aqm'], ['x'], ['pfifo', 'nosuch'], {})", varied="'x'"), "samovar has no queue discipline nosuch"),
        (small_configuration(more="TPCONF_host_os = {'b': 'CYGWIN'}\n"), "b ran CYGWIN"),
        (small_configuration(more="TPCONF_duration = input()\n"), "TPCONF_duration: input() would have to be executed"),
        (small_configuration(more="TPCONF_host_init_custom_cmds = {'a': ['mysql --password=hunter22']}\n"), "or they contain a password"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_translated_is_reported_with_the_reason(
    project: Path, text: str, note: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_text(project, text) == 0
    printed = capsys.readouterr().out
    assert note in printed
    assert note in (project / "experiments" / "mine.yaml").read_text()
    assert "hunter22" not in printed


def test_files_included_by_execfile_are_read_only_from_the_folder_of_the_configuration(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "queues.py").write_text(f"TPCONF_router_queues = [{QUEUE}]\n")
    text = small_configuration(
        queues="",
        more="execfile('queues.py')\nexecfile('mine.py')\nexecfile('../../../../../../etc/passwd')\n",
    )
    assert import_text(project, text) == 0
    assert plan_of(project).trials[0].resolved.path is not None
    assert capsys.readouterr().out.count("not another file below") == 2


def test_comprehensions_are_evaluated_as_in_the_examples_of_teacup(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        "SIZES = [100, 200]\nTPCONF_sizes_str = ','.join(\n    str(x) for x in SIZES)\n"
        "TPCONF_buffer_sizes = [2 * x for x in SIZES]\n"
        "TPCONF_variable_defaults['V_sizes'] = TPCONF_sizes_str\n"
        "TPCONF_parameter_list['bs'] = (['V_bsize'], ['bs'], TPCONF_buffer_sizes, {})\n"
        "TPCONF_vary_parameters = ['bs']\n"
    )
    assert import_text(project, small_configuration(more=more)) == 0
    assert "to check" not in capsys.readouterr().out
    paths = [trial.resolved.path for trial in plan_of(project).trials]
    assert [path and path.down.buffer_packets for path in paths] == [200, 400]


def test_texts_of_a_configuration_are_formatted_as_in_python_2(project: Path) -> None:
    more = (
        "command = 'tc qdisc add dev %s root netem delay %dms' % ('eth3', 10)\n"
        "TPCONF_host_init_custom_cmds = {'a': [command, 'echo %s' % command]}\n"
    )
    assert import_text(project, small_configuration(more=more)) == 0
    added = "tc qdisc add dev eth3 root netem delay 10ms"
    run = plan_of(project).trials[0].resolved.hosts["a"].settings["command"]["run"]
    assert run == f"{added} && echo {added}"


def test_an_entry_that_cannot_be_read_leaves_the_other_entries_of_its_dictionary(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = (
        "TPCONF_variable_defaults = {'V_duration': 20, 'V_test': os.getpid(),\n"
        "    'V_delay': 40, 'V_rate': '8mbit', 'V_bsize': 100, 'V_aqm': 'pfifo'}\n"
    )
    assert import_text(project, small_configuration(more=more)) == 0
    assert "mine.py:12: TPCONF_variable_defaults['V_test']: os.getpid() would" in capsys.readouterr().out
    run = plan_of(project).trials[0].resolved
    assert (run.duration_s, run.path and run.path.down.delay_s) == (20, 0.04)


HOSTILE = {
    "call of a function": "__import__('os').system('touch {}')",
    "call in an assignment": "TPCONF_x = __import__('os').system('touch {}')",
    "open": "TPCONF_x = open('{}', 'w').write('x')",
    "exec": "exec(\"open('{}', 'w')\")",
    "eval": "TPCONF_x = eval(\"open('{}', 'w')\")",
    "lambda": "TPCONF_x = (lambda: open('{}', 'w'))()",
    "comprehension": "TPCONF_x = [open('{}', 'w') for _ in (1,)]",
    "function": "def f():\n    open('{}', 'w')\nf()",
    "class": "class A:\n    x = open('{}', 'w')",
    "with": "with open('{}', 'w') as f:\n    pass",
    "decorator": "@open('{}', 'w')\ndef f(): pass",
    "attributes of a class": "TPCONF_x = ''.__class__.__base__.__subclasses__()",
    "argument of a traffic entry": "TPCONF_traffic_gens += [('0', '7', \"start_ping, client=open('{}', 'w'), dest='b'\")]",
    "duration of a traffic entry": "TPCONF_traffic_gens += [('0', '7', \"start_ping, client='a', dest='b', duration=open('{}', 'w')\")]",
    "argument of a queue": "TPCONF_router_queues = [('1', \"source=open('{}', 'w'), dest='b'\")]",
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_nothing_of_a_configuration_is_executed(line: str, project: Path) -> None:
    target = project / "executed"
    assert import_text(project, small_configuration(more=line.replace("{}", str(target)) + "\n")) == 0
    assert not target.exists()


BROKEN = {
    "not Python": "this is not python",
    "syntax error": small_configuration() + "x = (\n",
    "Python 2": "print 'hello'\n",
    "null bytes": "x = 1\0",
    "binary": "\x7fELF\x02\x01\x01" * 50,
    "100,000 parentheses": "(" * 100_000,
    "100,000 minus signs": "x = " + "-" * 100_000 + "1",
    "sum of 50,001 numbers": "x = " + "1+" * 50_000 + "1",
    "50,000 attributes": "x = a" + ".a" * 50_000,
    "empty file": "",
    "no traffic": small_configuration(traffic=""),
    "numbers in place of lists": "TPCONF_hosts = 5\nTPCONF_router = {}\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_is_not_a_configuration_is_refused_without_a_traceback(
    text: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_text(project, text) == 1
    error = capsys.readouterr().err
    assert re.match(r".*mine\.py(:\d+:\d+)?: ", error.replace("\n", ""))
    assert "Traceback" not in error
    assert list((project / "experiments").iterdir()) == []


@pytest.mark.parametrize(
    "value",
    ["5", "'x'", "'inf'", "None", "[[]]", "{'hostA': 5}", "{'k': ([], [], [[1]], {})}", "[(1, ') + (', '')]"],
)
def test_any_value_of_a_variable_is_read_or_refused_with_a_message(value: str, project: Path) -> None:
    names = [name for name in VARIABLES if name.startswith("TPCONF_")]
    for name in names:
        (project / "mine.py").write_text(f"{EVERY.read_text()}\n{name} = {value}\n")
        with suppress(SamovarError):
            import_config(project / "mine.py", project, name, Project(project).catalogue, ".schema")
    assert len(list((project / "hosts").iterdir())) > len(names) / 2


def test_a_syntax_error_does_not_show_the_line_with_a_password(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_text(project, "env.password = 'hunter22\n") == 1
    assert "hunter22" not in "".join(capsys.readouterr())


def test_a_missing_file_and_a_folder_are_refused(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (project / "nosuch.py", project):
        assert run_commands(["import", "teacup", str(path)], project) == 1
        assert "no such file; give the config.py of TEACUP" in capsys.readouterr().err.replace("\n", " ")


def test_the_how_to_page_explains_each_variable_in_the_words_of_the_command() -> None:
    lines = {line for line in PAGE.read_text().splitlines() if line.startswith("- `")}
    equal: dict[Counterpart, list[str]] = {}
    for name, counterpart in VARIABLES.items():
        equal.setdefault(counterpart, []).append(f"`{name}`")
    wanted = {
        f"- {', '.join(names)}: "
        + "; ".join(text for text in ("" if here == NOTHING else f"`{here}`", remark) if text)
        for (here, remark), names in equal.items()
    }
    assert wanted - lines == set()


def test_written_files_have_no_unknown_keys(project: Path) -> None:
    assert import_text(project, small_configuration()) == 0
    tree, problems = yaml_tree.read_yaml(project / "hosts" / "mine.yaml")
    assert problems == []
    assert tree["bottleneck"] == {"router": "gw", "from": "eth1", "to": "eth2"}
