"""Peculiarities of real FreeBSD hosts (13.2, 14.0, 15.0), each with the recipe text that handles it.

Recipes run in dash. Commands print output recorded in tests/traces/freebsd, and fail without recorded output.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from samovar.campaign.dry_run import AsFound
from samovar.campaign.host_state import parse_state, unmet
from samovar.campaign.verdict.traces import read_queue_samples
from samovar.plan import DirectionPlan
from tests.unit.recipes.freebsd_sample import (
    CATALOGUE,
    PATH,
    PLAIN,
    TRACES,
    bottleneck,
    kernel,
    prelude,
    recipes,
    recorded_output,
    replay,
    run_logger,
    values_of,
)

FREEBSD = "freebsd"
COUNTERS = {
    "kldstat -q -m ipfw": "",
    "kldstat -q -m dummynet": "",
    "sysctl -n net.inet.ip.fw.enable": "1",
    "sysctl -n net.inet.ip.fw.one_pass": "0",
    "sysctl -n net.inet.ip.dummynet.expire": "0",
    "sysctl -n net.inet.ip.dummynet.pipe_slot_limit": "100000",
    "sysctl -n net.inet.ip.dummynet.pipe_byte_limit": "67108864",
}
AQM_OF_PIPE = {3: "pfifo", 4: "red", 5: "gred", 6: "codel", 7: "pie"}


def setting(name: str, block: str, **values: object) -> str:
    system = str(values.pop("system", FREEBSD))
    recipe = CATALOGUE.recipe("setting", name, system)
    return recipe.render(block, {**values_of(recipe), **values})


def with_pipe_number(text: str, pipe: int, number: int) -> str:
    """Replace the number of a pipe in the output of ipfw by another number."""
    return text.replace(f"{pipe:05d}:", f"{number:05d}:").replace(
        f"q{131072 + pipe} ", f"q{131072 + number} "
    )


def state_of(rules: str, pipes: str, scheds: str = "") -> dict[str, str]:
    answers = {**COUNTERS, "ipfw list": rules, "ipfw pipe show": pipes, "ipfw sched show": scheds}
    done = replay(setting("bottleneck", "read"), answers)
    assert (done.stderr, done.returncode) == ("", 0)
    return parse_state(done.stdout)


# -- loading ipfw and dummynet --


LOADED = """
have= accepts=0
kldstat() { case " $have " in *" $3 "*) return 0 ;; esac; return 1; }
kldload() { echo "load $2, by itself $accepts"; have="$have $2"; }
kldunload() { echo "unload $1"; have=; }
kenv() { case $1 in -q) accepts=0 ;; *) accepts=${1#*=} ;; esac; }
"""


@pytest.mark.parametrize("name", ["bottleneck", "shaper"])
def test_ipfw_is_loaded_before_its_state_is_read(name: str) -> None:
    assert setting(name, "read").splitlines()[0] == "firewall"
    # After this command the host never answered again.
    assert recorded_output("13.2", "kldload dummynet; echo rc=$?; kldstat") == ""


@pytest.mark.parametrize("allowed", [True, False])
def test_ipfw_accepts_all_packets_from_the_start_or_is_unloaded_before_dummynet_is_loaded(
    allowed: bool,
) -> None:
    printed = ["load ipfw, by itself 1", "ipfw -q add 65534 allow ip from any to any"]
    rule = f'ipfw() {{ echo "ipfw $*"; return {0 if allowed else 1}; }}'
    done = replay("firewall\necho accepts=$accepts", {}, LOADED, rule)
    last = "load dummynet, by itself 0" if allowed else "unload ipfw"
    assert done.stdout.splitlines() == [*printed, last, "accepts=0"]


def test_an_ipfw_that_is_loaded_already_keeps_its_own_rules() -> None:
    done = replay("have='ipfw dummynet'\nfirewall", {}, LOADED)
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("name", ["bottleneck", "shaper"])
def test_a_disabled_ipfw_is_enabled_only_if_a_rule_accepts_all_packets(name: str) -> None:
    assert setting(name, "set").splitlines()[-1] == "firewall_on"
    closed = recorded_output("14.0", "ipfw list", 1).splitlines()[-1] + "\n"
    assert closed == "65535 deny ip from any to any\n"
    switch = 'sysctl() { case $1 in -n) echo 0 ;; *) echo "$1" >&2 ;; esac; }'
    done = replay("firewall_on", {"ipfw list": closed}, switch)
    assert (done.returncode, "none of its rules passes all packets" in done.stderr) == (1, True)
    assert "net.inet.ip.fw.enable=1" not in done.stderr
    open_ = "65534 allow ip from any to any\n" + closed
    done = replay("firewall_on", {"ipfw list": open_}, switch)
    assert (done.returncode, done.stderr) == (0, "net.inet.ip.fw.enable=1\n")


REFUSED = """\
link_elf_obj: symbol __stack_chk_guard undefined
linker_load_file: /boot/kernel/ipfw.ko - unsupported file type
"""
"""The last lines of dmesg(8) on 14.0 after `kldload ipfw` with a module file of another kernel."""


@pytest.mark.parametrize("name", ["bottleneck", "shaper"])
def test_if_ipfw_cannot_be_loaded_the_message_has_the_reason_of_the_kernel(name: str) -> None:
    was = {"net.inet.ip.fw.enable": "absent", "net.inet.ip.dummynet.expire": "absent"}
    done = replay(setting(name, "set", was=was), {"dmesg": "em2: link state changed to UP\n" + REFUSED})
    message = "the kernel modules ipfw and dummynet cannot be loaded\n"
    assert (done.returncode, done.stderr) == (1, REFUSED + message)


# -- flushing --


def test_no_recipe_of_any_release_flushes_the_firewall() -> None:
    for release in ("9", "13", "14"):
        for recipe in recipes(release):
            for block in recipe.blocks:
                assert not re.search(r"ipfw\b.*\bflush", recipe.render(block, values_of(recipe))), recipe.path
    assert recorded_output(
        "14.0", "ipfw -f flush && ipfw -q add 65534 allow ip from any to any; echo rc=$?"
    ) == ("Flushed all rules.\n")


def test_only_rules_and_pipes_that_the_recipe_added_are_removed() -> None:
    added = re.findall(r"ipfw -q add (\d+)", setting("bottleneck", "set"))
    made = re.findall(r"ipfw -q (pipe|sched|queue) (\d+) config", setting("bottleneck", "set"))
    recorder = 'ipfw() { echo "$*"; }'
    done = replay(setting("bottleneck", "restore"), {}, recorder, "back() { :; }")
    orders = [line.split() for line in done.stdout.splitlines()]
    assert {rule for _, word, *rules in orders if word == "delete" for rule in rules} == set(added)
    # A scheduler is removed together with its pipe: the kernel cannot remove it alone.
    assert recorded_output("14.0", "ipfw sched 8 delete", 0, "stderr").endswith("Invalid argument\n")
    gone = {(word, number) for _, word, *rest in orders if word != "delete" for number in rest[1:]}
    assert gone == {(kind, number) for kind, number in made if kind != "sched"}
    assert {number for kind, number in made if kind == "sched"} <= {n for kind, n in gone if kind == "pipe"}
    assert all(41 <= int(rule) <= 49 for rule in added)
    assert all(20001 <= int(number) <= 21999 for _, number in made)


def test_foreign_ipfw_rules_with_numbers_of_the_recipe_are_counted() -> None:
    state = state_of("00041 pipe 1 ip from any to any out\n65534 allow ip from any to any\n", "")
    assert state["ipfw.rules"] == "1"


@pytest.mark.parametrize(
    ("name", "count", "range_"),
    [("bottleneck", "ipfw.rules", "41 to 49"), ("shaper", "shaper.rules", "51 to 59")],
)
def test_foreign_ipfw_rules_with_numbers_of_the_recipe_are_neither_changed_nor_removed(
    name: str, count: str, range_: str
) -> None:
    was = {**values_of_was(name), count: "1"}
    done = replay(setting(name, "set", was=was), {})
    assert done.returncode == 1
    assert f"rules {range_} of ipfw are in use" in done.stderr
    assert "nobody recorded" not in done.stderr
    done = replay(setting(name, "restore", was=was), {}, "back() { :; }")
    assert (done.stdout, done.stderr) == ("", "")


@pytest.mark.parametrize("name", sorted(CATALOGUE.names("setting", FREEBSD) - {"command"}))
def test_a_dry_run_with_an_unknown_state_of_the_host_renders_no_refusal(name: str) -> None:
    assert not re.search("^fail ", setting(name, "set", was=AsFound()), re.MULTILINE)


def values_of_was(name: str) -> dict[str, str]:
    was = values_of(CATALOGUE.recipe("setting", name, FREEBSD))["was"]
    assert isinstance(was, dict)
    return was


# -- kldload and modules, and the panic after kldunload siftr --


def test_kernel_modules_are_searched_by_module_name_and_loaded_quietly() -> None:
    assert recorded_output(
        "14.0", "kldload ipfw && ipfw -q add 65534 allow ip from any to any; kldstat; ipfw list"
    )
    assert recorded_output("13.2", "kldload siftr", 1, "stderr").startswith(
        "kldload: can't load siftr: module already"
    )
    for release in ("9", "14"):
        for recipe in recipes(release):
            for block in recipe.blocks:
                text = recipe.render(block, values_of(recipe))
                assert not re.search(r"kldload (?!-n )", text), recipe.path
                assert "kldunload siftr" not in text


def test_siftr_is_never_unloaded_because_its_shutdown_hook_stays_behind() -> None:
    assert "Fatal trap 12" in recorded_output("13.2", "dmesg")
    assert "kldunload" not in CATALOGUE.recipe("logger", "siftr", FREEBSD).path.read_text()


# -- congestion control --


def test_a_refused_congestion_control_is_an_error_although_sysctl_prints_the_old_one() -> None:
    refused = "net.inet.tcp.cc.algorithm=nosuch"
    assert recorded_output("13.2", f"sysctl {refused}") == "net.inet.tcp.cc.algorithm: newreno\n"
    script = setting("cc", "set", algorithm="nosuch", parameters={})
    sysctl = 'sysctl() { [ "$1" = -n ] && echo newreno && return; echo "net.inet.tcp.cc.algorithm: newreno"; return 1; }'
    done = replay(script, {"kldstat -q -m nosuch": ""}, sysctl)
    assert (done.returncode, done.stdout) == (1, "")
    assert "the kernel refused net.inet.tcp.cc.algorithm=nosuch" in done.stderr


def test_if_a_congestion_control_cannot_be_loaded_the_message_has_the_lines_of_dmesg() -> None:
    assert "Please check dmesg(8)" in recorded_output("14.0", "kldload siftr", 0, "stderr")
    dmesg = (
        "KLD cc_cdg.ko: depends on ertt - not available or version mismatch\nlinker_load_file: unsupported"
    )
    refusing = "kldstat() { return 1; }\nkldload() { return 1; }"
    done = replay(setting("cc", "set"), {"dmesg": dmesg}, refusing)
    assert done.returncode == 1
    assert "depends on ertt" in done.stderr
    assert "the kernel module cc_cdg cannot be loaded" in done.stderr


# -- counters and output of dummynet --


@pytest.mark.parametrize("release", ["13.2", "14.0"])
def test_the_queue_sampler_reads_the_output_of_ipfw_while_traffic_flows(release: str, tmp_path: Path) -> None:
    shown = recorded_output(release, "ipfw pipe show", 0 if release == "13.2" else 4)
    rules = "00043 9 900 pipe 20999 ip from any to any out xmit em2\n"
    rules += "00044 8 800 count ip from any to any out xmit em2"
    rows = sampler_rows(with_pipe_number(shown, 1, 20999), rules, tmp_path)
    row = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    assert (row["drops"], row["backlog_packets"]) == {"13.2": ("60", "0"), "14.0": ("0", "0")}[release]
    # Packets that left the queue are counted, not packets that arrived.
    assert (row["sent_packets"], row["sent_bytes"]) == ("8", "800")
    assert (row["t_ns"], row["interface"], row["handle"]) == ("1795271645123456789", "em2", "20999:")
    assert [sample.sent_bytes for sample in read_queue_samples(rows[:2], "em2")] == [800]


def test_the_queue_of_a_trial_on_freebsd_15_is_sampled_and_read_back(tmp_path: Path) -> None:
    pipes, rules = recorded_output("15.0", "ipfw pipe show"), recorded_output("15.0", "ipfw -a list")
    rows = sampler_rows(pipes, rules, tmp_path)
    row = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    assert (row["handle"], row["backlog_packets"], row["backlog_bytes"], row["drops"]) == (
        "20999:",
        "19",
        "11400",
        "91",
    )
    assert (row["sent_packets"], row["sent_bytes"]) == ("9879", "5878492")
    down = DirectionPlan(interface="em2", rate_bps=4_000_000, delay_s=0.01, aqm="pfifo", buffer_packets=40)
    path = PLAIN.model_copy(update={"down": down, "up": DirectionPlan(interface="em1", delay_s=0.01)})
    wanted = setting("bottleneck", "wanted", **bottleneck(path)).splitlines()
    of_path = [line for line in wanted if line.startswith(("pipe.", "queue.", "ipfw."))]
    assert [str(found) for found in unmet(of_path, state_of(without_counts(rules), pipes))] == []


def without_counts(rules: str) -> str:
    """Return the output of `ipfw list` for an output of `ipfw -a list`."""
    return re.sub(r"(?m)^(\d+) +\d+ +\d+", r"\1", rules)


def sampler_rows(pipes: str, rules: str, folder: Path) -> list[str]:
    values = {
        **values_of(CATALOGUE.recipe("logger", "queue", FREEBSD)),
        "interface": "em2",
        "interval_s": 0.05,
    }
    start = CATALOGUE.recipe("logger", "queue", FREEBSD).render("start", values)
    bare = without_counts(rules)
    (folder / "bin").mkdir()
    for name, text in (
        (
            "ipfw",
            f'case $* in "list") echo "{bare}" ;; "-a list") echo "{rules}" ;; *) cat <<EOF\n{pipes}EOF\n;; esac',
        ),
        ("stat", "echo t 1795271645.123456789"),
    ):
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    script = (
        f"cd '{folder}'; PATH='{folder}/bin':$PATH\n"
        'launch() { l_output=$3; shift 3; "$@" >"$l_output" & }\n'
        f"{start}\nuntil [ -e src-queue.ready ]; do sleep 0.02; done; kill $!; wait\n"
    )
    subprocess.run(["dash", "-c", script], check=True, capture_output=True, timeout=30)
    return (folder / "src-queue.csv").read_text().splitlines()


def test_counters_of_the_queue_are_those_of_rules_and_counters_of_delay_stages_those_of_pipes() -> None:
    rules = recorded_output("14.0", "ipfw -a list")  # recorded while traffic flowed
    arrived, left = (line.split()[1:3] for line in rules.splitlines()[:2])
    rules = rules.replace("00100", "00043").replace("00200", "00044")
    rules = rules.replace(
        "pipe 2 ip from 172.16.11.2 to 172.16.10.2 out", "count ip from any to any out xmit em2"
    )
    pipes = with_pipe_number(recorded_output("14.0", "ipfw pipe show", 4), 1, 20002)
    done = replay(setting("bottleneck", "counters"), {"ipfw -a list": rules, "ipfw pipe show": pipes})
    assert done.stderr == ""
    counts = parse_state(done.stdout)
    packets, size = map(int, left)
    assert counts["queue.down"] == f"{size + 14 * packets} {packets} {int(arrived[0]) - packets}"
    row = next(line for line in pipes.splitlines() if "0.0.0.0/0" in line).split()
    total, drops = int(row[-5]), int(row[-1])
    assert counts["stage.down"] == f"{int(row[-4]) + 14 * (total - drops)} {total - drops} {drops}"
    assert counts["stage.down1"] == "0 0 0"  # no packet has arrived at this stage yet


def test_idle_queues_keep_their_counters_while_the_bottleneck_is_set() -> None:
    # With expire=1, the kernel has deleted the counters.
    assert "Drp" not in recorded_output("13.2", "sleep 2; ipfw pipe show")
    assert "turn net.inet.ip.dummynet.expire 0 " in setting("bottleneck", "set")
    assert "net.inet.ip.dummynet.expire=0" in setting("bottleneck", "wanted").splitlines()


@pytest.mark.parametrize("pipe", sorted(AQM_OF_PIPE))
def test_a_dummynet_pipe_in_the_output_of_a_real_kernel_is_recognised(pipe: int) -> None:
    shown = recorded_output("14.0", f"ipfw pipe {pipe} show")
    state = state_of("65534 allow ip from any to any", with_pipe_number(shown, pipe, 20999))
    recipe = CATALOGUE.recipe("aqm", AQM_OF_PIPE[pipe], FREEBSD)
    values = {"buffer_packets": 100 if pipe == 3 else 200, "ecn": int(pipe in (5, 7))}
    lines = [line.strip() for line in recipe.render("shown", values).splitlines() if line.strip()]
    assert lines
    assert [str(found) for found in unmet([f"queue.20999*={line}" for line in lines], state)] == []
    assert state["pipe.20999.rate"] == "10000000"
    assert (state["pipe.20999.delay"], state["pipe.20999.loss"]) == (
        ("20", "0.010000") if pipe == 3 else ("0", "0")
    )


def test_a_queue_of_bytes_and_a_pipe_without_a_rate_are_read_back() -> None:
    two = with_pipe_number(with_pipe_number(recorded_output("14.0", "ipfw pipe show", 1), 1, 20001), 2, 20999)
    state = state_of("", two)
    assert state["queue.20999"] == "800 KB droptail"
    shown = CATALOGUE.recipe("aqm", "bfifo", FREEBSD).render("shown", {"buffer_bytes": 819_200}).strip()
    assert shown == state["queue.20999"]
    free = state_of("", with_pipe_number(recorded_output("14.0", "ipfw pipe show", 3), 2, 21001))
    assert (free["pipe.21001.rate"], free["pipe.21001.delay"]) == ("0", "5")


@pytest.mark.parametrize(("aqm", "number", "packets"), [("fq_codel", 8, 1000), ("fq_pie", 9, 500)])
def test_a_dummynet_scheduler_in_the_output_of_a_real_kernel_is_recognised(
    aqm: str, number: int, packets: int
) -> None:
    shown = recorded_output("14.0", "ipfw sched show", 1)
    shown = shown.replace(f" sched {number} type", " sched 20999 type")
    state = state_of("", "", shown)
    wanted = CATALOGUE.recipe("aqm", aqm, FREEBSD).render("shown", {"buffer_packets": packets})
    assert [str(found) for found in unmet([f"queue.20999*={wanted.strip()}"], state)] == []


def test_foreign_pipes_of_dummynet_are_not_read() -> None:
    state = state_of(
        "", recorded_output("14.0", "ipfw pipe show", 1), recorded_output("14.0", "ipfw sched show", 0)
    )
    assert {key for key in state if key.startswith(("pipe.", "queue."))} == set()


def test_a_rate_is_always_set_in_bits_and_read_back_because_ipfw_accepts_any_unit() -> None:
    assert recorded_output("14.0", "ipfw pipe 3 config bw 8mbitbits/s", 0, "stderr") == ""
    script = setting("bottleneck", "set", **bottleneck(PLAIN)).replace(" $queue", " queue 546")
    assert "config bw 40000000bit/s delay 1ms queue 546" in script
    assert "pipe.20999.rate=40000000" in setting("bottleneck", "wanted").splitlines()


def test_a_queue_length_that_ipfw_changed_silently_is_reported() -> None:
    assert recorded_output("14.0", "ipfw pipe 3 config bw 10Mbit/s queue 0", 0, "stderr") == ""
    wanted = [line for line in setting("bottleneck", "wanted").splitlines() if line.startswith("queue.20999")]
    state = state_of("", with_pipe_number(recorded_output("14.0", "ipfw pipe show", 3), 2, 20999))
    assert [found.observed for found in unmet(wanted, state)] == ["50 sl. droptail"]


# -- links that go down, clocks without fractions --


def test_an_interface_is_active_only_while_its_link_is_up() -> None:
    up, down = (recorded_output("14.0", "ifconfig em1", turn) for turn in (0, 1))
    assert "status: no carrier" in down
    for text, code in ((up, 0), (down, 1)):
        assert replay("active em1", {"ifconfig em1": text}).returncode == code
    assert replay("active em9", {}).returncode == 1


@pytest.mark.parametrize("status", ["associated", "running"])
def test_wireless_interfaces_of_a_station_and_of_an_access_point_are_active(status: str) -> None:
    shown = recorded_output("14.0", "ifconfig em1").replace("status: active", f"status: {status}")
    assert replay("active em1", {"ifconfig em1": shown}).returncode == 0


@pytest.mark.parametrize("agreed", ["", ",master", ",rxpause,txpause"])
def test_the_speed_of_a_link_is_read_without_other_media_options(agreed: str) -> None:
    shown = recorded_output("14.0", "ifconfig em1")
    assert "media: Ethernet autoselect (1000baseT <full-duplex>)" in shown
    shown = shown.replace("<full-duplex>", f"<full-duplex{agreed}>")
    state = parse_state(replay(setting("speed", "read", interfaces=("em1",)), {"ifconfig em1": shown}).stdout)
    for rate, met in ((1_000_000_000, True), (100_000_000, False)):
        wanted = setting("speed", "wanted", interfaces=("em1",), rate=rate).split("\n")
        assert (unmet([line for line in wanted if line], state) == ()) is met


@pytest.mark.parametrize(
    ("before", "order"),
    [
        ("autoselect", "media autoselect"),
        ("100baseTX", "media 100baseTX mediaopt half-duplex"),
        ("100baseTX <full-duplex>", "media 100baseTX mediaopt full-duplex"),
    ],
)
def test_half_duplex_of_a_network_card_is_restored(before: str, order: str) -> None:
    # Cards list half duplex as a speed without an option; ifconfig(8) keeps earlier options (setmedia() of its
    # ifmedia.c), so that setting only a speed would keep full duplex.
    listed = recorded_output("14.0", "ifconfig -m em1")
    assert ("media 100baseTX\n" in listed, "half-duplex" in listed) == (True, False)
    restore = setting("speed", "restore", interfaces=("em1",), was={"speed.em1": before}, rate=10**9)
    assert restore.strip().splitlines()[0] == f"ifconfig em1 {order}"


def test_tso_is_disabled_by_a_sysctl_and_flags_change_only_where_they_differ() -> None:
    text = setting("offloads", "set")
    assert "turn net.inet.tcp.tso 0" in text
    assert "tso" not in text.replace("net.inet.tcp.tso", "")
    assert text.count("-lro") == 1  # only for em1: em2 has no LRO
    shown = {f"ifconfig em{n}": recorded_output("14.0", "ifconfig em1", n - 1) for n in (1, 2)}
    end = {**shown, "sysctl -n net.inet.tcp.tso": "1", "sysctl -n net.inet.ip.forwarding": "0"}
    assert offload_state(end) == {
        "offload.tso": "1",
        "offload.em1.lro": "1",
        "offload.em1.merging": "1",
        "offload.em2.lro": "0",
        "offload.em2.merging": "0",
    }


def offload_state(answers: Mapping[str, str]) -> dict[str, str]:
    done = replay(setting("offloads", "read"), answers)
    assert done.stderr == ""
    return parse_state(done.stdout)


def test_lro_of_a_router_is_not_changed_because_the_kernel_merges_no_forwarded_packets() -> None:
    lro = recorded_output("14.0", "ifconfig em1", 0)
    router = {"ifconfig em1": lro, "ifconfig em2": lro, "sysctl -n net.inet.tcp.tso": "1"}
    router["sysctl -n net.inet.ip.forwarding"] = "1"
    was = offload_state(router)
    assert (was["offload.em1.lro"], was["offload.em1.merging"]) == ("1", "0")
    wanted = [line for line in setting("offloads", "wanted").splitlines() if line.strip()]
    assert unmet([line for line in wanted if "tso" not in line], was) == ()
    for block in ("set", "restore"):
        assert "lro" not in setting("offloads", block, was=was)


def test_lro_requested_on_a_router_sets_the_flag_although_the_kernel_merges_no_forwarded_packets() -> None:
    lro = recorded_output("14.0", "ifconfig em1", 0)
    router = {"ifconfig em1": lro, "ifconfig em2": lro.replace(",LRO", ""), "sysctl -n net.inet.tcp.tso": "0"}
    router["sysctl -n net.inet.ip.forwarding"] = "1"
    was = offload_state(router)
    changes = [line for line in setting("offloads", "set", was=was, lro=1).splitlines() if " lro" in line]
    assert changes == ['set -- "$@" lro']  # a change of em2 alone: em1 has LRO already
    wanted = [line for line in setting("offloads", "wanted", lro=1).splitlines() if line.strip()]
    assert unmet(wanted, was) != ()
    assert unmet(wanted, offload_state({**router, "ifconfig em2": lro})) == ()
    assert setting("offloads", "restore", was=was, lro=1).count('set -- "$@" -lro') == 1


def test_packets_are_merged_if_the_host_does_not_forward_them_or_the_card_merges_by_itself() -> None:
    lro = recorded_output("14.0", "ifconfig em1", 0)
    six = lro.replace("\tnd6 ", "\tinet6 2001:db8::2 prefixlen 64\n\tnd6 ")
    link = lro.replace("\tnd6 ", "\tinet6 fe80::1%em1 prefixlen 64\n\tnd6 ")
    answers = {"sysctl -n net.inet.ip.forwarding": "1", "sysctl -n net.inet6.ip6.forwarding": "0"}
    for name, shown, four, merges in (
        ("em1", lro, "0", True),
        ("em1", lro, "1", False),
        ("em1", link, "1", False),
        ("em1", six, "1", True),
        ("vmx1", lro, "1", True),
    ):
        forwards = {**answers, "sysctl -n net.inet.ip.forwarding": four, f"ifconfig {name}": shown}
        assert (replay(f'merging {name} "$(ifconfig {name})"', forwards).returncode == 0) is merges


def test_lro_that_an_earlier_version_of_samovar_disabled_on_a_router_is_restored() -> None:
    was = {"offload.tso": "1", "offload.em1.lro": "1", "offload.em2.lro": "0"}
    text = setting("offloads", "restore", was=was)
    assert [line for line in text.splitlines() if line.startswith('set -- "$@"')] == ['set -- "$@" lro']


@pytest.mark.parametrize("name", ["offloads", "mtu", "speed", "txd"])
def test_every_change_that_takes_a_link_down_waits_until_the_link_is_up(name: str) -> None:
    for block in ("set", "restore"):
        text = setting(name, block)
        assert text.count("reattach" if name == "txd" else "restarted") >= 1
    assert "settled" in prelude().split("reattach() {")[1].split("\n}\n")[0]


@pytest.mark.parametrize(
    ("name", "state", "values"),
    [
        ("offloads", {"offload.tso": "0", "offload.em1.lro": "0", "offload.em1.merging": "0"}, {}),
        ("mtu", {"mtu.em1": "600"}, {}),
        ("speed", {"speed.em1": "100baseTX <full-duplex>"}, {}),
        ("txd", {"txd.em1": "256", "txd.em1.kenv": "256"}, {}),
        ("wlan", {"wlan.rates": "NONE"}, {"rate": "auto"}),
        ("pause", {"pause.em1": "0"}, {}),
    ],
)
@pytest.mark.parametrize("block", ["set", "restore"])
def test_an_interface_that_has_the_wanted_values_already_is_not_changed(
    name: str, state: dict[str, str], values: dict[str, str], block: str
) -> None:
    text = setting(name, block, interfaces=("em1",), was=state, **values)
    sysctls = kernel({"net.inet.tcp.tso": 0, "dev.em.1.fc": 0})
    untouched = "ifconfig() { fail changed; }; reattach() { fail changed; }; kenv() { fail changed; }"
    done = replay(text, {}, sysctls, "kernel_values net.inet.tcp.tso dev.em.1.fc", untouched)
    assert (done.stderr, done.returncode) == ("", 0)


def test_all_changed_links_are_awaited_together_and_unchanged_links_are_not_awaited(tmp_path: Path) -> None:
    up, down = (recorded_output("14.0", "ifconfig em1", turn) for turn in (0, 1))
    (tmp_path / "up").write_text(up)
    (tmp_path / "down").write_text(down)
    # The first four reads of a link find it up, down, down and up.
    program = f"""
await() {{ shift; for _ in 1 2 3 4 5 6; do ! "$@" || return 0; echo sleep >>'{tmp_path}/log'; done; return 1; }}
ifconfig() {{
  echo "$1" >>'{tmp_path}/log'; echo >>'{tmp_path}/'$1
  case $(wc -l <'{tmp_path}/'$1) in *2 | *3) cat '{tmp_path}/down' ;; *) cat '{tmp_path}/up' ;; esac
}}
"""
    done = replay(
        "links_settled; echo none; restarted em1; restarted em2; links_settled; echo all", {}, program
    )
    assert (done.stdout, done.stderr) == ("none\nall\n", "")
    reads = (tmp_path / "log").read_text().split()
    assert reads.index("em2") < reads.index("sleep"), "both links are read before the first wait"
    assert 3 <= reads.count("em1") <= 5
    text = 'await() { shift; "$@"; }\nactive() { return 1; }\nrestarted em1; links_settled'
    assert replay("", {}, text).stderr == "em1 has no link 30 s after it was changed\n"


def test_the_mtu_is_read_by_netstat() -> None:
    done = replay("mtu em1", {"netstat -n -I em1": recorded_output("13.2", "netstat -ibn -I em1")})
    assert done.stdout == "1500\n"


def test_the_clock_is_read_from_a_file_because_date_prints_no_fractions_of_a_second(tmp_path: Path) -> None:
    assert ".N" in recorded_output("13.2", "date; date -u +%s; date +%s.%N; date -u '+%Y-%m-%dT%H:%M:%SZ'")
    script = CATALOGUE.recipe("step", "clock", FREEBSD).render("script", {})
    (tmp_path / "script").write_text(f"stat() {{ echo 1795271645.123456789; }}\n{script}now_ns\n")
    run = ["dash", str(tmp_path / "script")]
    done = subprocess.run(run, text=True, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == ("1795271645123456789\n", "")


# -- receive windows, and the ENOBUFS that followed recvspace=9999999 --


def test_the_receive_buffer_starts_large_because_autotuning_stops_early() -> None:
    text = CATALOGUE.recipe("setting", "buffers", FREEBSD).render(
        "set", values_of(CATALOGUE.recipe("setting", "buffers", FREEBSD))
    )
    kept = {"sendspace": 32768, "recvspace": 65536, "sendbuf_max": 2097152, "recvbuf_max": 2097152}
    oids = {"kern.ipc.maxsockbuf": 2097152, **{f"net.inet.tcp.{name}": value for name, value in kept.items()}}
    done = replay(text, {}, kernel(oids))
    assert "net.inet.tcp.recvspace=2097152" in done.stderr.splitlines()


def test_no_receive_buffer_is_set_that_would_make_every_socket_fail() -> None:
    assert (
        recorded_output("14.0", "sysctl net.inet.tcp.recvspace=9999999")
        == "net.inet.tcp.recvspace: 1500000 -> 9999999\n"
    )
    assert "No buffer space available" in recorded_output("14.0", "iperf3 -c 172.16.11.9 -t 1", 0, "stderr")
    for size_bytes in (1000, 50_000, 1_500_000, 9_999_000, 100_000_000):
        assignments = sysctls_of_window(size_bytes)
        space = int(assignments["net.inet.tcp.recvspace"])
        room = int(assignments.get("kern.ipc.maxsockbuf", 2_097_152))
        assert space <= room * 8 // 9
        assert list(assignments)[-1] == "net.inet.tcp.recvspace"
        unit = next(1 << scale for scale in range(15) if 65535 << scale >= room)
        offered = -(-(space if space <= 1460 else -(-space // 1460) * 1460) // unit) * unit
        assert size_bytes - 2 * 1460 - unit < offered <= size_bytes


def test_the_computed_window_is_equal_to_the_window_on_the_wire() -> None:
    done = replay('offered 1500000 1460 "$(window_unit)"', {"sysctl -n kern.ipc.maxsockbuf": "2097152"})
    assert done.stdout == "1500928\n"  # snd_wnd in SIFTR logs of both releases with a recvspace of 1500000
    assert replay("space_for 100 1460 256", {}).returncode == 1


def sysctls_of_window(size_bytes: int) -> dict[str, str]:
    """Return the sysctls that recipe `rwnd` sets for a window, with their values, in order; before, they have defaults."""
    answers = {"route -n get -inet 172.16.10.2": recorded_output("13.2", "route -n get 172.16.11.2")}
    script = setting("rwnd", "set", size_bytes=size_bytes)
    usual = {
        "net.inet.tcp.recvspace": 65_536,
        "net.inet.tcp.recvbuf_auto": 1,
        "kern.ipc.maxsockbuf": 2_097_152,
    }
    done = replay(script, answers, kernel(usual))
    assert done.returncode == 0
    return dict(line.split("=") for line in done.stderr.splitlines())


@pytest.mark.parametrize(
    ("size_bytes", "space", "fits"),
    [
        (200_000, 198_560, "fits"),
        (200_000, 199_900, "other"),
        (200_000, 200_000, "other"),
        (200_000, 65_536, "other"),
    ],
)
def test_a_window_fits_if_the_buffer_in_whole_segments_is_just_below_it(
    size_bytes: int, space: int, fits: str
) -> None:
    answers = {
        "route -n get -inet 172.16.10.2": recorded_output("14.0", "route -n get 172.16.11.2"),
        "sysctl -n kern.ipc.maxsockbuf": "16776960",
        "sysctl -n net.inet.tcp.recvspace": str(space),
        "sysctl -n net.inet.tcp.recvbuf_auto": "0",
    }
    done = replay(setting("rwnd", "read", size_bytes=size_bytes), answers)
    assert parse_state(done.stdout)["window.172.16.10.2"] == fits


# -- txd --


def test_the_ring_is_read_from_the_last_message_of_the_driver() -> None:
    boot = recorded_output("13.2", "dmesg")
    assert replay("descriptors em1", {"dmesg": boot}).stdout == "1024\n"
    again = (
        boot
        + "em1: Using 256 TX descriptors and 1024 RX descriptors\nem0: Using 512 TX descriptors and 1024 RX descriptors\n"
    )
    assert replay("descriptors em1", {"dmesg": again}).stdout == "256\n"
    assert replay("descriptors em2", {"dmesg": boot}).stdout == "none\n"


def test_a_ring_is_set_in_the_kernel_s_environment_not_by_the_sysctl_that_has_no_effect() -> None:
    assert "0 -> 256" in recorded_output("14.0", "sysctl dev.em.1.iflib.override_ntxds=256")
    text = setting("txd", "set")
    assert "kenv " in text
    assert not re.search(r"sysctl (?!-n)", text)


@pytest.mark.parametrize(("txd", "accepted"), [(256, True), (257, False), (0, False), (4096, True)])
def test_a_ring_size_that_is_not_a_power_of_two_is_refused_because_the_driver_would_ignore_it(
    txd: int, accepted: bool
) -> None:
    done = replay(setting("txd", "set", txd=txd).splitlines()[0], {})
    assert (done.returncode == 0) is accepted
    assert ("not a power of two" in done.stderr) is not accepted


def test_addresses_and_static_routes_of_an_interface_are_restored() -> None:
    interface = recorded_output("13.2", "ifconfig").split("em1: ")[1].split("lo0: ")[0]
    echo = 'ifconfig() { echo "ifconfig $*"; }\nroute() { echo "route $*" >&2; }'
    script = f"addresses_back em1 <<'EOF'\n{interface}EOF\n"
    assert replay(script, {}, echo).stdout == "ifconfig em1 inet 172.16.10.2 netmask 0xffffff00 alias\n"
    table = recorded_output("13.2", "netstat -rn -f inet")
    script = f'route() {{ echo "route $*" >>"$log"; }}\nlog=$(mktemp); routes_back em1 <<\'EOF\'\n{table}EOF\ncat "$log"; rm "$log"'
    assert replay(script, {}).stdout == "route -q add -inet -net 172.16.11.0/24 172.16.10.1\n"


def test_a_loader_tunable_is_written_atomically_and_restored(tmp_path: Path) -> None:
    conf = tmp_path / "loader.conf"
    conf.write_text('kern.hz="1000"\nhw.em.txd="1024"\nhw.em.rxd="1024"\n')

    def run(block: str, **values: object) -> subprocess.CompletedProcess[str]:
        text = setting("txd", block, system="freebsd-11", interfaces=("em1",), **values)
        answers = {"sysctl -n hw.em.txd": "1024"}
        return replay(text.replace("/boot/loader.conf", str(conf)), answers)

    assert parse_state(run("read").stdout) == {"txd.em1": "1024", "planned.txd.em1": "1024"}
    was = {"txd.em1": "1024", "planned.txd.em1": "1024"}
    assert run("set", was=was).returncode == 0
    assert conf.read_text() == 'kern.hz="1000"\nhw.em.rxd="1024"\nhw.em.txd="256"\n'
    assert parse_state(run("read").stdout) == {"txd.em1": "1024", "planned.txd.em1": "256"}
    run("restore", was={**was, "planned.txd.em1": "unset"})
    assert conf.read_text() == 'kern.hz="1000"\nhw.em.rxd="1024"\n'
    assert [path.name for path in tmp_path.iterdir()] == ["loader.conf"]


# -- SIFTR --


class Siftr:
    """A stand-in for SIFTR in the kernel: sysctls with recorded values, and a log with a header and a footer."""

    def __init__(self, folder: Path, oids: str) -> None:
        self.folder = folder
        (folder / "bin").mkdir()
        (folder / "oids").mkdir()
        for line in oids.splitlines():
            name, _, value = line.removeprefix("net.inet.siftr.").partition(": ")
            (folder / "oids" / name).write_text(value + "\n")
        program = folder / "bin" / "sysctl"
        program.write_text(f"""#!/bin/sh
cd '{folder}/oids'
case $1 in -n) name=${{2##*.}}; [ -e "$name" ] || {{ echo "sysctl: unknown oid '$2'" >&2; exit 1; }}; cat "$name"; exit ;; esac
echo "$*" >>'{folder}/assignments'
for one; do
set -- "$one"
name=${{1%%=*}}; name=${{name##*.}} value=${{1#*=}}
[ -e "$name" ] || {{ echo "sysctl: unknown oid 'net.inet.siftr.$name'" >&2; exit 1; }}
case $name in
  logfile) [ -d "${{value%/*}}" ] || {{ echo "sysctl: $1: No such file or directory" >&2; exit 1; }} ;;
  enabled) read -r log <logfile; if [ "$value" = 1 ]; then echo "enable_time_secs=1" >>"$log"; elif [ -e "$log" ]; then echo "disable_time_secs=2" >>"$log"; fi ;;
esac
echo "net.inet.siftr.$name: $(cat "$name") -> $value"
echo "$value" >"$name"
done
""")
        program.chmod(0o755)
        for name in ("kldstat", "kldload", "dmesg"):
            (folder / "bin" / name).write_text("#!/bin/sh\n")
            (folder / "bin" / name).chmod(0o755)

    def run(self, then: str = ":", **values: object) -> subprocess.CompletedProcess[str]:
        """Run the logger for a moment, run the shell text `then`, and stop the logger."""
        recipe = CATALOGUE.recipe("logger", "siftr", FREEBSD)
        start = recipe.render("start", {**values_of(recipe), **values})
        script = (
            f"cd '{self.folder}'; dir='{self.folder}'; PATH='{self.folder}/bin':$PATH\n"
            'fail() { echo "$*" >&2; exit 1; }\n'
            'launch() { l_output=$3; shift 3; "$@" >"$l_output" & }\n'
            f"{start}\nn=0; until [ -e src-siftr.ready ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.02; done; sleep 0.1\n{then}\n"
            "kill -TERM $!; wait $!\n"
        )
        return subprocess.run(["dash", "-c", script], text=True, capture_output=True, check=False, timeout=30)

    def value(self, oid: str) -> str:
        return (self.folder / "oids" / oid).read_text().strip()


SIFTR_OIDS = {
    "13.2": recorded_output("13.2", "sysctl net.inet.siftr", 1),
    "14.0": recorded_output("14.0", "sysctl net.inet.siftr", 1),
}


@pytest.mark.parametrize("release", sorted(SIFTR_OIDS))
def test_siftr_writes_header_and_footer_to_one_file_and_is_restored(release: str, tmp_path: Path) -> None:
    siftr = Siftr(tmp_path, SIFTR_OIDS[release])
    before = {path.name: path.read_text() for path in (tmp_path / "oids").iterdir()}
    done = siftr.run()
    assert (done.stderr, done.returncode) == ("", 0)
    assert (tmp_path / "src-siftr.csv").read_text() == "enable_time_secs=1\ndisable_time_secs=2\n"
    assert {path.name: path.read_text() for path in (tmp_path / "oids").iterdir()} == before
    assert ("genhashes" in before) is (release == "13.2")
    # One call of sysctl disables SIFTR and restores its log file, because a slow host needs a second to start a program.
    last = (tmp_path / "assignments").read_text().splitlines()[-1].split()
    assert (last[0], last[-1]) == ("net.inet.siftr.enabled=0", "net.inet.siftr.logfile=/var/log/siftr.log")


def commands(release: str) -> list[str]:
    return [str(entry["command"]) for entry in json.loads((TRACES / f"{release}.json").read_text())]


def test_a_siftr_that_is_in_use_is_not_changed(tmp_path: Path) -> None:
    siftr = Siftr(tmp_path, SIFTR_OIDS["14.0"])
    (tmp_path / "oids" / "enabled").write_text("1\n")
    done = siftr.run()
    assert "on already" in done.stderr
    assert siftr.value("logfile") == "/var/log/siftr.log"


def test_a_siftr_that_an_earlier_trial_left_enabled_is_disabled_and_used(tmp_path: Path) -> None:
    siftr = Siftr(tmp_path, SIFTR_OIDS["14.0"])
    (tmp_path / "oids" / "enabled").write_text("1\n")
    (tmp_path / "oids" / "logfile").write_text(f"{tmp_path.parent}/earlier/src-siftr.csv\n")
    done = siftr.run()
    assert (done.stderr, done.returncode) == ("", 0)
    assert (tmp_path / "src-siftr.csv").read_text() == "enable_time_secs=1\ndisable_time_secs=2\n"
    assert (siftr.value("enabled"), siftr.value("logfile")) == ("0", "/var/log/siftr.log")


@pytest.mark.parametrize("release", sorted(SIFTR_OIDS))
def test_the_log_file_of_a_deleted_trial_is_replaced_by_the_default(release: str, tmp_path: Path) -> None:
    # After an interrupted trial, its folder was deleted: SIFTR refuses a file in a folder that does not exist.
    siftr = Siftr(tmp_path, SIFTR_OIDS[release])
    (tmp_path / "oids" / "logfile").write_text(f"{tmp_path}/gone/src-siftr.csv\n")
    done = siftr.run()
    assert (done.stderr, done.returncode) == ("", 0)
    assert siftr.value("logfile") == "/var/log/siftr.log"


def test_siftr_does_not_wait_for_the_footer_of_a_deleted_log(tmp_path: Path) -> None:
    siftr = Siftr(tmp_path, SIFTR_OIDS["14.0"])
    done = siftr.run(then="rm src-siftr.csv")
    assert done.stderr == ""
    assert (siftr.value("enabled"), siftr.value("logfile")) == ("0", "/var/log/siftr.log")


# -- steps --


@pytest.mark.parametrize(
    ("logfile", "orders"),
    [
        ("/tmp/samovar-test/x/src-siftr.csv", ["enabled=0", "logfile=/var/log/siftr.log"]),
        ("/var/log/siftr.log", []),
    ],
)
def test_a_sweep_disables_siftr_only_if_its_log_is_in_a_trial_s_folder(
    logfile: str, orders: list[str]
) -> None:
    sweep = CATALOGUE.recipe("step", "sweep", FREEBSD).render("script", {"campaign": "c"})
    kernel = f"""dir=/tmp/samovar-test/x
rm() {{ :; }}
sysctl() {{ if [ "$1" = -n ]; then echo {logfile}; else echo "$1" >&3; fi; }}"""
    done = replay(
        sweep.replace('"$dir/processes"', "/dev/null"),
        {"ps axeww -o pid= -o ppid= -o command=": ""},
        "exec 3>&1",
        kernel,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"net.inet.siftr.{order}" for order in orders]


def test_a_listening_port_is_found_although_columns_of_sockstat_have_no_space_between_them() -> None:
    shown = recorded_output(
        "14.0", "pgrep iperf3 >/dev/null || iperf3 -s -D; sleep 0.3; sockstat -4 -l -p 5201"
    )
    heading = shown.splitlines()[0] + "\n"
    for port, text, code in (
        ("5201", shown, 0),
        ("520", heading, 1),
        ("22", recorded_output("13.2", "sockstat -4 -l"), 0),
    ):
        assert replay(f"listening {port}", {f"sockstat -4 -6 -l -p {port}": text}).returncode == code
        assert replay(f"listening_udp {port}", {f"sockstat -4 -6 -l -p {port}": text}).returncode == 1


def test_the_end_of_a_program_is_reported_even_if_timeout_misses_it(tmp_path: Path) -> None:
    # FreeBSD's timeout.c catches SIGCHLD before the fork and waits for it afterwards: one that arrives in between is lost.
    (tmp_path / "waits_late.py").write_text(
        "import signal, subprocess, sys\n"
        "subprocess.run(sys.argv[4:])\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})\n"
        "sys.exit(0 if signal.sigtimedwait({signal.SIGCHLD}, float(sys.argv[3])) else 124)\n"
    )
    script = (
        prelude().replace("/tmp/samovar-test/x", str(tmp_path / "samovar" / "x"))
        + f'\ntimeout() {{ exec {sys.executable} {tmp_path}/waits_late.py "$@"; }}\n'
        'launch a 20 a.out true\nawait 10 ended a || exit 1\nread -r code <a.exit; echo "$code"\n'
    )
    done = subprocess.run(["dash", "-c", script], text=True, capture_output=True, check=False, timeout=30)
    assert (done.stdout, done.stderr, done.returncode) == ("0\n", "", 0)


def test_a_logger_that_needs_seconds_to_end_is_not_killed(tmp_path: Path) -> None:
    script = (
        prelude().replace("/tmp/samovar-test/x", str(tmp_path / "samovar" / "x"))
        + "launch a 60 a.out sh -c 'trap \"sleep 3; echo footer; exit 0\" TERM; : >ready; while :; do sleep 0.1; done'\n"
        'await 5 exists ready && halt a && await_end a || exit 1\nread -r code <a.exit; echo "$code"\ncat a.out\n'
    )
    done = subprocess.run(["dash", "-c", script], text=True, capture_output=True, check=False, timeout=40)
    assert (done.stdout, done.stderr, done.returncode) == ("0\nfooter\n", "", 0)


def test_a_program_that_survives_timeout_is_killed(tmp_path: Path) -> None:
    # FreeBSD's timeout(1) does not lead a process group, and no longer sends SIGKILL after a second SIGTERM.
    script = (
        prelude().replace("/tmp/samovar-test/x", str(tmp_path / "samovar" / "x"))
        + '\ntimeout() { shift 2; exec timeout --foreground "$@"; }\n'
        "launch a 60 a.out sh -c 'trap \"\" TERM; echo $$ >program; exec sleep 60'\n"
        "await 5 exists program && halt a && await_end a || exit 1\n"
        'read -r pid <program; sleep 0.2; case $(ps -o stat= -p "$pid") in "" | Z*) ;; *) kill -KILL "$pid"; echo survived ;; esac\n'
        'read -r code <a.exit; echo "$code"\n'
    )
    done = subprocess.run(["dash", "-c", script], text=True, capture_output=True, check=False, timeout=40)
    assert (done.stdout, done.stderr, done.returncode) == ("137\n", "", 0)


@pytest.mark.parametrize("what", ["jitter", "duplicate", "loss_burst"])
def test_features_that_dummynet_lacks_are_refused_by_name(what: str) -> None:
    change: dict[str, object] = {
        "jitter": {"jitter_s": 0.001},
        "duplicate": {"duplicate": 0.01},
        "loss_burst": {"loss": 0.01, "loss_burst_packets": 3.0},
    }[what]  # type: ignore[assignment]
    path = PLAIN.model_copy(update={"down": PLAIN.down.model_copy(update=change)})
    done = replay(setting("bottleneck", "set", **bottleneck(path)), {"sysctl -n kern.hz": "1000"})
    assert done.returncode == 1
    assert f"dummynet has no {what}" in done.stderr


def test_half_milliseconds_of_both_directions_are_added_to_direction_up_and_smaller_fractions_are_refused() -> (
    None
):
    text = setting("bottleneck", "set", **bottleneck(PLAIN))
    assert re.findall(r"delay (\d+)ms", text) == ["6", "1", "7", "1"]
    down = PLAIN.down.model_copy(update={"delay_s": 0.0001})
    path = PLAIN.model_copy(update={"down": down})
    done = replay(setting("bottleneck", "set", **bottleneck(path)), {"sysctl -n kern.hz": "1000"})
    assert "dummynet delays by whole milliseconds" in done.stderr


@pytest.mark.parametrize(
    ("delay_s", "change", "before", "after"),
    [
        (0.02, {}, 19, 1),
        (0.001, {}, 0, 1),
        (0.002, {"reorder": 0.01}, 1, 1),
        (0.001, {"reorder": 0.01}, 1, 0),
        (0.02, {"rate_bps": None, "aqm": None, "buffer_packets": None}, 20, None),
    ],
)
def test_one_ms_of_the_delay_follows_the_queue_so_that_no_packet_overtakes_after_a_late_tick(
    delay_s: float, change: dict[str, object], before: int, after: int | None
) -> None:
    down = DirectionPlan(interface="em2", rate_bps=4_000_000, delay_s=delay_s, aqm="pfifo", buffer_packets=40)
    path = PLAIN.model_copy(update={"down": down.model_copy(update=change)})
    wanted = parse_state(setting("bottleneck", "wanted", **bottleneck(path)))
    assert wanted["pipe.20001.delay"] == str(before)
    assert wanted.get("pipe.20999.delay") == (None if after is None else str(after))
    script = setting("bottleneck", "set", **bottleneck(path))
    assert f"pipe 20001 config delay {before}ms " in script
    assert f" delay {after}ms $queue" in script or after is None


def test_packets_outside_of_all_classes_keep_a_delay_of_zero() -> None:
    """A part of the delay is applied after the queue only if all packets are delayed, not just those of classes."""
    down = PATH.down.model_copy(update={"delay_s": 0.0, "loss": 0.0, "reorder": 0.0})
    path = PATH.model_copy(update={"down": down})
    wanted = parse_state(setting("bottleneck", "wanted", **bottleneck(path)))
    assert (wanted["pipe.20001.delay"], wanted["pipe.20999.delay"]) == ("50", "0")


def test_a_router_whose_clock_ticks_too_slowly_is_refused() -> None:
    done = replay(setting("bottleneck", "set"), {"sysctl -n kern.hz": "100"})
    assert "kern.hz=100 ticks per second" in done.stderr


NEIGHBOURS = """\
? (172.16.10.9) at 4a:32:a1:ec:bb:9c on em1 expires in 1182 seconds [ethernet]
? (172.16.10.2) at 02:54:ac:10:1e:02 on em1 permanent [ethernet]
? (172.16.10.1) at 02:54:ac:10:1e:01 on em1 permanent [ethernet]"""
"""Output of arp(8) on 14.0, with the interface's own address in the second line."""


def test_a_reattached_interface_gets_its_settings_back_in_order(tmp_path: Path) -> None:
    log = tmp_path / "log"
    gone = "em1: flags=8802<BROADCAST,SIMPLEX,MULTICAST> metric 0 mtu 1500\n\tstatus: active\n"
    recorder = f"""
note() {{ echo "$*" >>'{log}'; }}
ifconfig() {{ [ $# -gt 1 ] && {{ note ifconfig "$@"; return; }}; if [ -e '{log}' ]; then cat <<'EOF'
{gone.rstrip()}
EOF
else cat <<'EOF'
{recorded_output("14.0", "ifconfig em1").rstrip()}
EOF
fi; }}
devctl() {{ note devctl "$@"; }}
arp() {{ [ $1 = -an ] && echo '{NEIGHBOURS}' || note arp "$@"; }}
route() {{ note route "$@"; }}
sysctl() {{ case $1 in -n) echo 3 ;; *) note sysctl "$@" ;; esac; }}
await() {{ [ "$2" = inactive ] || {{ shift; "$@"; }}; }}
"""
    answers = {
        "netstat -n -I em1": recorded_output("13.2", "netstat -ibn -I em1").replace("1500", "600 "),
        "netstat -rn": recorded_output("14.0", "netstat -rn -f inet"),
    }
    done = replay("reattach em1", answers, recorder)
    assert (done.stderr, done.returncode) == ("", 0)
    assert log.read_text().splitlines() == [
        "devctl disable em1",
        "devctl enable em1",
        "ifconfig em1 mtu 600",
        "ifconfig em1 lro",
        "sysctl dev.em.1.fc=3",
        "ifconfig em1 up",
        "ifconfig em1 inet 172.16.10.2 netmask 0xffffff00 alias",
        "arp -s 172.16.10.1 02:54:ac:10:1e:01",
        "route -q add -inet -net 172.16.11.0/24 172.16.10.1",
    ]


def test_an_interface_that_does_not_come_back_stops_the_trial() -> None:
    recorder = "devctl() { :; }\nifconfig() { return 1; }\nsysctl() { return 1; }\nawait() { return 1; }"
    answers = {
        "netstat -n -I em1": recorded_output("13.2", "netstat -ibn -I em1"),
        "netstat -rn": "",
        "arp -an -i em1": "",
    }
    done = replay("reattach em1", answers, recorder)
    assert (done.returncode, done.stderr) == (1, "em1 did not come back\n")


def test_a_queue_may_be_longer_than_the_hundred_slots_that_the_kernel_allows_by_default() -> None:
    refusal = recorded_output("14.0", "ipfw pipe 3 config bw 10Mbit/s queue 100000", 0, "stderr")
    assert "2 <= queue size <= 20000" in refusal
    lines = setting("bottleneck", "set").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("ipfw "))
    turned = next(line for line in lines[:first] if line.startswith("turn "))
    assert "net.inet.ip.dummynet.pipe_slot_limit 100000" in turned
    assert "net.inet.ip.dummynet.pipe_byte_limit 67108864" in turned


def test_packets_that_tcpdump_has_not_read_at_its_end_are_reported(tmp_path: Path) -> None:
    closing = next(c for c in commands("14.0") if c.startswith("(tcpdump"))
    assert "0 packets dropped by kernel" in recorded_output("14.0", closing, 0, "stderr")
    drain = CATALOGUE.recipe("logger", "tcpdump", FREEBSD).render(
        "drain", values_of(CATALOGUE.recipe("logger", "tcpdump", FREEBSD))
    )
    for line, behind in (
        (
            "tcpdump: 94886 packets captured, 94886 packets received by filter, 0 packets dropped by kernel",
            False,
        ),
        (
            "tcpdump: 94000 packets captured, 94886 packets received by filter, 886 packets dropped by kernel",
            False,
        ),
        (
            "tcpdump: 90000 packets captured, 94886 packets received by filter, 0 packets dropped by kernel",
            True,
        ),
    ):
        # tcpdump prints its name before counters that are requested while it runs (info() of its tcpdump.c), not at its end.
        (tmp_path / "src-tcpdump.err").write_text(f"tcpdump: listening on em1\n{line}\n")
        (tmp_path / "src-tcpdump.pid").write_text("1\n")
        helpers = f"cd '{tmp_path}'\npkill() {{ :; }}\nawait() {{ shift; \"$@\"; }}"
        done = replay(drain, {}, helpers)
        assert done.stderr == ""
        assert ("were left in the kernel's buffer" in done.stdout) is behind


def test_counters_of_an_interface_are_found_by_column_headings_and_names_of_sysctls(tmp_path: Path) -> None:
    rows = run_logger(
        "nic",
        {
            "netstat": recorded_output("14.0", "netstat -i -b -n -I em1"),
            "sysctl": recorded_output("14.0", "sysctl dev.em.1.mac_stats 2>/dev/null | head -60"),
        },
        tmp_path,
    )
    row = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    assert (row["rx_bytes"], row["rx_packets"], row["tx_bytes"], row["tx_packets"]) == (
        "15580962", "231355", "618681530", "409637",
    )  # fmt: skip
    assert {name: value for name, value in row.items() if name.startswith("card.")} == {
        "card.xoff_txd": "0", "card.xoff_recvd": "0", "card.xon_txd": "0", "card.xon_recvd": "0",
    }  # fmt: skip


def test_cpu_shares_are_computed_over_the_time_since_the_previous_sample(tmp_path: Path) -> None:
    clockrate = recorded_output("13.2", next(c for c in commands("13.2") if "kern.clockrate" in c))
    rate = next(line for line in clockrate.splitlines() if "stathz" in line)
    script = 'case $2 in kern.clockrate) echo "%s" ;; *) n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) >n; echo "0 0 0 $((n * 32)) $((n * 96))" ;; esac'
    rows = run_logger("cpu", {"sysctl": "!" + script % rate.partition(": ")[2]}, tmp_path)
    first, second = (dict(zip(rows[0].split(","), row.split(","), strict=True)) for row in rows[1:3])
    assert (first["cpu"], first["busy_share"]) == ("0", "")
    assert (second["busy_share"], second["softirq_share"]) == ("0.2500", "0.2500")
    assert (second["irq_s"], second["idle_s"]) == ("0.25", "0.76")  # the clock ticks 127 times per second


def test_beacons_are_parsed_from_tcpdump_s_output_for_echo_requests(tmp_path: Path) -> None:
    printed = recorded_output(
        "14.0", next(c for c in commands("14.0") if c.startswith("tcpdump --time-stamp-type=host"))
    )
    line = next(line for line in printed.splitlines() if "echo request" in line)
    beacon = line.replace(line.split()[0], "1795271645.953945").replace("172.16.11.2", "224.0.1.199")
    elsewhere = beacon.replace("172.16.10.2", "172.16.10.9")
    ifconfig = recorded_output("13.2", "ifconfig").split("em1: ")[1].split("lo0: ")[0]
    tcpdump = f"!echo 'listening on em1' >&2; cat <<'EOF'\n{beacon}\n{elsewhere}\nEOF\nexec sleep 0.4"
    rows = run_logger(
        "beacons",
        {"tcpdump": tcpdump, "ifconfig": "em1: " + ifconfig, "ping": "!exit 0"},
        tmp_path,
        control="em1",
        send="never",
    )
    assert rows == [
        "t_ns,direction,src,id,sequence,sent_ns",
        "1795271645953945000,out,172.16.10.2,62725,0,",
        "1795271645953945000,in,172.16.10.9,62725,0,",
    ]


def test_the_beacon_logger_ends_if_tcpdump_fails(tmp_path: Path) -> None:
    ifconfig = "em1: " + recorded_output("13.2", "ifconfig").split("em1: ")[1].split("lo0: ")[0]
    tcpdump = "echo 'listening on em1' >&2; exec 2>&-; sleep 0.3; exit 1"
    for name, body in {"tcpdump": tcpdump, "ifconfig": f"cat <<'EOF'\n{ifconfig}EOF"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    recipe = CATALOGUE.recipe("logger", "beacons", FREEBSD)
    start = recipe.render("start", {**values_of(recipe), "control": "em1", "send": "never"})
    script = (
        f"cd '{tmp_path}'; PATH='{tmp_path}':$PATH\n"
        'launch() { l_output=$3; l_err=$1.err; shift 3; "$@" >"$l_output" 2>"$l_err" & }\n'
        f"{start}\nwait $!\n"
    )
    subprocess.run(["dash", "-c", script], check=True, capture_output=True, timeout=20)
    assert (tmp_path / "src-beacons.csv").read_text() == "t_ns,direction,src,id,sequence,sent_ns\n"
