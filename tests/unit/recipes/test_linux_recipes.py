"""Recipes of Linux hosts: complete headers, and renderings equal to the golden files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from samovar.campaign.dry_run import AsFound
from samovar.recipes import Catalogue, Recipe

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "linux"
CATALOGUE = Catalogue(ROOT / "templates")
KINDS = ("setting", "aqm", "generator", "logger")
SYSTEMS = ("linux", "posix")
UNITS = {"size": "B", "size or zero": "B", "rate": "bit/s", "duration": "s", "packets": "packets"}
"""The unit in which a recipe gets values of a type."""
TYPES = {
    *UNITS,
    "share",
    "integer",
    "number",
    "switch",
    "choice",
    "text",
    "name",
    "interface",
    "address",
    "path",
    "shell",
}
COMPOUND = ("list of ", "names and values")
DEVICES = {"adapter": "adapter/adapter.c", "air": "wlan/ports.c"}
"""Source files of a lab's devices that write a trace, by the name of the logger."""
COUNTED = ("_bytes", "_packets", "_s", "_us", "_ns", "_bps", "_kib")
NOT_IN_DEBIAN = {"nttcp"}
FOR_RADIOS = {"iw"}  # programs for hosts with a radio; neither labs nor controllers have them
ALWAYS = {"python3-minimal"}
"""Packages that listed packages install as dependencies."""


def recipes() -> list[object]:
    """Return every recipe that an experiment can name, with its kind and name as id."""
    paths = sorted(path for system in SYSTEMS for kind in KINDS for path in _files(system, kind))
    return [
        pytest.param(Recipe(path.parent.name, _name(path), path), id=f"{path.parent.name}-{_name(path)}")
        for path in paths
    ]


def _files(system: str, kind: str) -> list[Path]:
    return list((ROOT / "templates" / system / kind).glob("*.sh.j2"))


def _name(path: Path) -> str:
    return path.name.removesuffix(".sh.j2")


@pytest.mark.parametrize("recipe", recipes())
def test_a_header_has_a_summary_of_one_sentence(recipe: Recipe) -> None:
    summary = recipe.header.summary
    assert summary.endswith(".")
    assert "\n" not in summary


@pytest.mark.parametrize("recipe", recipes())
def test_each_parameter_has_a_type_and_the_unit_of_its_type(recipe: Recipe) -> None:
    for name, parameter in recipe.header.parameters.items():
        assert parameter.type in TYPES or parameter.type.startswith(COMPOUND), name
        assert parameter.unit == UNITS.get(parameter.type, parameter.unit), name
        assert parameter.unit or not name.endswith(COUNTED), f"{name} has no unit"


@pytest.mark.parametrize("recipe", recipes())
def test_generators_and_loggers_declare_the_traces_that_they_write(recipe: Recipe) -> None:
    assert bool(recipe.header.leaves) == (recipe.kind in ("generator", "logger"))


@pytest.mark.parametrize("recipe", recipes())
def test_recipes_that_reset_an_interface_declare_this_change(recipe: Recipe) -> None:
    text = recipe.path.read_text()
    resets = any(f"ethtool {flag} " in text for flag in ("-G", "-A", "-s")) or " mtu {{" in text
    assert resets == (recipe.header.change == "interface-reset")


def test_the_reference_explains_the_trace_of_each_logger() -> None:
    page = (ROOT / "docs" / "reference" / "traces.md").read_text()
    explained = set(re.findall(r"^## .*`<host>-([\w-]+)\.csv\.gz`", page, flags=re.MULTILINE))
    assert explained == CATALOGUE.names("logger", "linux") - {"tcpdump"}


@pytest.mark.parametrize("name", sorted(CATALOGUE.names("logger", "linux") - {"tcpdump", "nic"}))
def test_the_reference_explains_each_column_of_a_trace(name: str) -> None:
    page = (ROOT / "docs" / "reference" / "traces.md").read_text()
    of_all, *parts = page.split("\n## ")  # the first part explains the columns of all traces
    (part,) = [part for part in parts if f"`<host>-{name}.csv.gz`" in part.partition("\n")[0]]
    program = ROOT / "templates" / "linux" / "program" / f"{name.replace('-', '_')}.py"
    if name in DEVICES:
        program = ROOT / "samovar" / "lab" / "devices" / DEVICES[name]
    header = re.search(r'(?:"(?=t_ns,)|truth_columns = ")([^"]*"(?:\s*"[^"]*")*)', program.read_text())
    assert header
    names = re.sub(r'"\s*"|\\n|"', "", header[1]).split(",")
    assert set(names) <= set(re.findall(r"`([^`]+)`", of_all + part))


@cache
def listed_packages() -> frozenset[str]:
    """Return the packages that packages.debian lists, and those that every Debian system has."""
    lines = (ROOT / "packages.debian").read_text().splitlines()
    named = {line.split("#")[0].strip() for line in lines} - {""}
    form = "${Package} ${Essential} ${Priority}\n"
    installed = _dpkg("-W", "-f", form).splitlines()
    always = {
        line.split()[0] for line in installed if "yes" in line.split()[1:] or "required" in line.split()[1:]
    }
    return frozenset(named | always | ALWAYS)


def _dpkg(*arguments: str) -> str:
    return subprocess.run(["dpkg-query", *arguments], capture_output=True, text=True, check=False).stdout


@cache
def package_of(program: str) -> str:
    """Return the Debian package of a program, or "none" if the program is not installed."""
    for folder in ("/usr/bin", "/usr/sbin", "/bin", "/sbin"):
        for line in _dpkg("-S", f"{folder}/{program}").splitlines():
            if not line.startswith("diversion "):
                return line.partition(":")[0]
    return "none"


@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="not a Debian")
@pytest.mark.parametrize("recipe", recipes())
def test_the_listed_packages_contain_the_programs_that_recipes_need(recipe: Recipe) -> None:
    header = recipe.header
    programs = {*header.needs, *header.client_needs, *header.server_needs} - NOT_IN_DEBIAN - FOR_RADIOS
    missing = {program: package_of(program) for program in programs}
    assert {p: package for p, package in missing.items() if package not in listed_packages()} == {}


IFS = ("eth1", "eth2")
SETTINGS: dict[str, dict[str, object]] = {
    "tcp": {"interfaces": IFS, "sack": 0, "ecn": "accept", "autotuning": 0, "notsent_lowat": 131072},
    "buffers": {"interfaces": IFS, "receive_max": 200_000, "socket_receive_max": 400_000},
    "offloads": {"interfaces": IFS, "tso": 1, "tx_checksum": 0},
    "mtu": {"interfaces": IFS, "mtu_bytes": 600},
    "command": {"interfaces": IFS, "run": "echo 'a b' >/tmp/x", "undo": "rm /tmp/x", "state": "ls /tmp/x"},
    "adapter": {
        "link": "powerline",
        "keys": {"rate_down_bps": "40000000", "buffer_down_frames": "2720", "simplex": "1"},
    },
    "air": {"link": "air", "keys": {"standard": "1", "snr_db@0": "50", "snr_db@1": "21.5"}},
    "shaper": {"interfaces": IFS, "rate": 40_000_000},
    "wlan": {"interfaces": ("wlan0", "eth1"), "rate": "54Mbit"},
    "txd": {"interfaces": IFS, "txd": 256},
    "pause": {"interfaces": IFS, "tx": 1},
    "speed": {"interfaces": IFS, "rate": 100_000_000},
    "cc": {"algorithm": "cdg", "parameters": {"backoff_beta": "512", "use_shadow": "off"}},
    "rwnd": {"size_bytes": 200_000, "peers": ("172.16.10.2",), "buffer_bytes": 315_948},
}
WAS = {
    **{f"offload.{name}.{what}": "on" for name in IFS for what in ("gro", "tx", "rx-gro-list")},
    **{f"offload.{name}.{what}": "off" for name in IFS for what in ("tso", "gso", "lro")},
    **{f"{what}.{name}": value for name in IFS for what, value in (("mtu", "1500"), ("txd", "512"))},
    **{f"pause.{name}.{what}": "on" for name in IFS for what in ("rx", "tx", "autoneg")},
    **{f"{what}.{name}": value for name in IFS for what, value in (("speed", "1000"), ("duplex", "full"), ("autoneg", "on"))},
    **{f"{name}.{what}": "4096" for name in ("tcp_rmem", "tcp_wmem") for what in ("low", "default", "max")},
    **{f"tcp_{name}": "1" for name in ("sack", "timestamps", "window_scaling", "no_metrics_save", "moderate_rcvbuf")},
    "adapter.rate_down_bps": "100000000", "adapter.simplex": "0", "air.air.standard": "0", "air.air.snr_db@0": "50",
    "tcp_ecn": "2", "tcp_notsent_lowat": "4294967295", "socket_receive_max": "212992", "tcp_adv_win_scale": "1",
    "tcp_rmem": "4096 131072 6291456", "route.172.16.10.2": "172.16.10.2 via 172.16.11.1 dev eth1",
    "cc": "cubic", "cc.backoff_beta": "724", "cc.use_shadow": "1", "wlan.rates": "0xfff",
    "shaper.eth1": "noqueue 0: ", "shaper.eth2": "mq 0: ",
}  # fmt: skip
LOGGERS: dict[str, dict[str, object]] = {
    "tcpdump": {"interface": "eth1", "output": "src-eth1.pcap.gz"},
    "tcp-probe": {"ports": (5001, 5002)},
    "beacons": {"control": "eth0", "interval_s": 1.0},
    "adapter": {"link": "powerline"},
    "air": {"link": "air"},
}


@pytest.mark.parametrize("name", sorted(CATALOGUE.names("setting", "linux") - {"bottleneck"}))
def test_the_blocks_of_a_setting_are_equal_to_the_golden_file(name: str) -> None:
    recipe = CATALOGUE.recipe("setting", name, "linux")
    values = {**SETTINGS[name], "was": WAS}
    blocks = ("read", "set", *(["fit"] if "fit" in recipe.blocks else []), "wanted", "restore")
    texts = {block: recipe.render(block, values) for block in blocks}
    _compare_with_golden(
        f"setting-{name}", "".join(f"# ---- {block}\n{text}" for block, text in texts.items())
    )
    for block in set(blocks) - {"wanted"}:
        _parses(texts[block])


@pytest.mark.parametrize("name", sorted(CATALOGUE.names("setting", "linux") - {"bottleneck"}))
def test_a_dry_run_with_an_unknown_state_of_the_host_renders_no_refusal(name: str) -> None:
    text = CATALOGUE.recipe("setting", name, "linux").render("set", {**SETTINGS[name], "was": AsFound()})
    assert not re.search("^fail ", text, re.MULTILINE)


@pytest.mark.parametrize("name", sorted(CATALOGUE.names("logger", "linux")))
def test_the_blocks_of_a_logger_are_equal_to_the_golden_file(name: str) -> None:
    recipe = CATALOGUE.recipe("logger", name, "linux")
    common = {"name": f"src-{name}", "output": f"src-{name}.csv", "limit_s": 26.0, "interface": "eth1"}
    values = {**common, "addresses": ("172.16.10.2", "172.16.11.2"), **LOGGERS.get(name, {})}
    blocks = [block for block in ("start", "ready", "drain") if block in recipe.blocks]
    text = "".join(f"# ---- {block}\n{recipe.render(block, values)}" for block in blocks)
    _compare_with_golden(f"logger-{name}", text)
    _parses(text)


@pytest.mark.parametrize(("count", "filtered"), [(40, 40), (41, 0)])
def test_the_tracepoint_filters_up_to_40_ports_and_records_all_flows_of_more_ports(
    count: int, filtered: int
) -> None:
    values = {"name": "x", "output": "x.csv", "limit_s": 9.0, "addresses": ()}
    ports = tuple(range(5000, 5000 + count))
    text = CATALOGUE.recipe("logger", "tcp-probe", "linux").render("start", {**values, "ports": ports})
    assert len(set(re.findall(r"\b50\d\d\b", text.splitlines()[-1]))) == filtered


def _compare_with_golden(name: str, text: str) -> None:
    path = GOLDEN / f"{name}.sh"
    if os.environ.get("SAMOVAR_WRITE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def _parses(script: str) -> None:
    done = subprocess.run(["dash", "-n"], input=script, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_shaper_replaces_a_lab_s_noqueue_and_restores_it() -> None:
    recipe = CATALOGUE.recipe("setting", "shaper", "linux")
    values = {"interfaces": ("em1",), "rate": 5_000_000, "was": {"shaper.em1": "noqueue 8001: "}}
    set_, restored = recipe.render("set", values), recipe.render("restore", values)
    assert set_.index("tc qdisc del dev em1 root handle 8001:") < set_.index(
        "printf 'qdisc add dev %s root handle 11: tbf"
    )
    assert restored.index("root handle 11:") < restored.index(
        "tc qdisc add dev em1 root handle 8001: noqueue"
    )
    values["was"] = {"shaper.em1": "fq 8001: limit 10000p"}
    assert "which the kernel did not set by itself" in recipe.render("set", values)


@pytest.mark.parametrize("block", ["set", "restore"])
def test_a_change_of_the_mtu_waits_until_the_link_is_up(block: str) -> None:
    values = {"interfaces": ("em1",), "mtu_bytes": 1400, "was": {"mtu.em1": "1500"}}
    links = "ip link add em1 type veth peer name em9 && ip link set em1 up && mount -t sysfs sysfs /sys\n"
    # The link comes up before the second check by `await`.
    shell = 'root() { "$@"; }\nawait() { shift; "$@"; ip link set em9 up; "$@" && echo "came up"; }\n'
    inside = ["unshare", "--net", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))]
    functions = CATALOGUE.recipe("step", "listening", "linux").render("script", {})
    script = links + functions + shell + CATALOGUE.recipe("setting", "mtu", "linux").render(block, values)
    done = subprocess.run([*inside, "dash", "-c", script], text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, "came up\n"), done.stderr


CDG = """
mount -t tmpfs none /sys/module && mkdir -p /sys/module/tcp_cdg/parameters && cd /sys/module/tcp_cdg/parameters || exit 1
load() { echo 717 >backoff_beta; echo 8 >window; [ $# -eq 0 ] || echo "${1#*=}" >"${1%%=*}"; }
root() { shift 2; load "$@"; }
can_put() { true; }
put_in() { case $1 in */window) false ;; /sys/*) echo "$2" >"$1" ;; esac; }
fail() { echo "$@"; exit 1; }
load window=4
"""
"""A stand-in for kernel module tcp_cdg, whose parameter `window` can be set only when the module is loaded."""


@pytest.mark.parametrize("block", ["set", "restore"])
def test_a_module_that_is_reloaded_for_one_parameter_keeps_its_other_parameters(block: str) -> None:
    values = {"backoff_beta": "800", "window": "16"}
    was = {f"cc.{name}": value for name, value in values.items()}
    recipe = CATALOGUE.recipe("setting", "cc", "linux")
    script = CDG + recipe.render(
        block, {"algorithm": "cdg", "parameters": values, "was": {"cc": "cubic", **was}}
    )
    inside = ["unshare", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user"))]
    done = subprocess.run(
        [*inside, "dash", "-c", f"{script}\ncat backoff_beta window"],
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["800", "16"], done.stderr
