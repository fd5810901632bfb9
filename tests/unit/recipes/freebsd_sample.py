"""Sample values for FreeBSD's recipes, and recorded output of real FreeBSD hosts, for tests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from samovar.plan import ClassPlan, DirectionPlan, HostPlan, MatchPlan, PathPlan
from samovar.recipes import Catalogue, Recipe, bottleneck_values

ROOT = Path(__file__).parents[3]
CATALOGUE = Catalogue(ROOT / "templates")
TRACES = ROOT / "tests" / "traces" / "freebsd"
RELEASES = ("9", "10", "11", "12", "13", "14", "15")
KINDS = ("aqm", "fact", "generator", "logger", "setting", "step")

ROUTER = HostPlan(
    os="freebsd",
    release="13.2",
    role="router",
    cc=None,
    rwnd_bytes=None,
    mtu_bytes=None,
    txd=None,
    interfaces=("em1", "em2"),
)
PATH = PathPlan(
    router="rtr",
    rtt_s=0.015,
    down=DirectionPlan(
        interface="em2",
        rate_bps=40_000_000,
        delay_s=0.0075,
        loss=0.01,
        reorder=0.001,
        aqm="pfifo",
        buffer_packets=546,
    ),
    up=DirectionPlan(
        interface="em1", rate_bps=10_000_000, delay_s=0.0075, aqm="fq_codel", buffer_packets=1000
    ),
    classes=(
        ClassPlan(
            match=(MatchPlan(from_subnet="172.16.10.2/32", to_subnet="172.16.11.2/32", port=5001),),
            delay_down_s=0.05,
            delay_up_s=0.05,
            loss=0.0,
        ),
    ),
)
PLAIN = PATH.model_copy(update={"classes": ()})

WAS: Mapping[str, Mapping[str, str]] = {
    "offloads": {
        "offload.tso": "1",
        "offload.em1.lro": "1",
        "offload.em1.merging": "1",
        "offload.em2.lro": "0",
        "offload.em2.merging": "0",
    },
    "mtu": {"mtu.em1": "1500", "mtu.em2": "600"},
    "cc": {"cc": "newreno", "cc.beta_delay": "70"},
    "tcp": {
        "net.inet.tcp.rfc1323": "1",
        "net.inet.tcp.sack.enable": "1",
        "net.inet.tcp.ecn.enable": "2",
        "net.inet.tcp.hostcache.enable": "1",
        "net.inet.tcp.hostcache.expire": "3600",
        "net.inet.tcp.hostcache.prune": "300",
    },
    "buffers": {
        "buffer.send_max": "2097152",
        "buffer.receive_max": "2097152",
        "buffer.socket_max": "2097152",
        "net.inet.tcp.recvspace": "65536",
    },
    "rwnd": {
        "net.inet.tcp.recvspace": "65536",
        "net.inet.tcp.recvbuf_auto": "1",
        "kern.ipc.maxsockbuf": "2097152",
    },
    "txd": {
        "txd.em1": "1024",
        "txd.em1.kenv": "unset",
        "txd.em2": "256",
        "txd.em2.kenv": "256",
        "planned.txd.em1": "unset",
        "planned.txd.em2": "1024",
    },
    "pause": {"pause.em1": "3", "pause.em2": "3"},
    "speed": {"speed.em1": "autoselect", "speed.em2": "100baseTX <full-duplex>"},
    "shaper": {"shaper.rules": "0", "net.inet.ip.fw.enable": "1"},
    "wlan": {"wlan.rates": "NONE"},
    "bpf": {"net.bpf.maxbufsize": "524288", "bpf.room": "less"},
    "bottleneck": {
        "ipfw.rules": "0",
        "net.inet.ip.fw.enable": "1",
        "net.inet.ip.fw.one_pass": "1",
        "net.inet.ip.dummynet.expire": "1",
        "net.inet.ip.dummynet.pipe_slot_limit": "100",
        "net.inet.ip.dummynet.pipe_byte_limit": "1048576",
    },
}
"""The state `was` that each setting recipe restores."""
VALUES: Mapping[str, Mapping[str, object]] = {
    "offloads": {},
    "mtu": {"mtu_bytes": 600},
    "cc": {"algorithm": "cdg", "parameters": {"beta_delay": "60"}},
    "tcp": {"ecn": "accept", "delayed_ack": 0},
    "buffers": {},
    "rwnd": {"size_bytes": 200_000, "peers": ("172.16.10.2",)},
    "txd": {"txd": 256},
    "pause": {},
    "speed": {"rate": 100_000_000},
    "shaper": {"rate": 40_000_000},
    "wlan": {"rate": "5.5Mbit"},
    "bpf": {"buffer_kib": 16384},
}
"""The parameters of each setting recipe."""


def values_of(recipe: Recipe) -> Mapping[str, object]:
    """Return the values with which a trial renders a recipe."""
    if recipe.kind == "setting":
        given = bottleneck() if recipe.name == "bottleneck" else VALUES[recipe.name]
        return {"interfaces": ("em1", "em2"), **given, "was": WAS[recipe.name]}
    if recipe.kind == "aqm":
        return {"buffer_packets": 200, "buffer_bytes": 819_200, "rate_bps": 10_000_000}
    if recipe.kind == "logger":
        name = f"src-{recipe.name}"
        output = f"{name}.pcap.gz" if recipe.name == "tcpdump" else f"{name}.csv"
        return {"name": name, "output": output, "limit_s": 21.0, "interface": "em1", "interval_s": 0.1}
    if recipe.kind == "generator":
        ends = {"from_address": "172.16.10.2", "to_address": "172.16.11.2", "port": 5001, "offered": ""}
        timed = {"limit_s": 21.0, "duration_s": 6.0, "size_bytes": None, "cc": None, "dscp": None}
        return {"name": "bulk-client", "output": "bulk-client.out", "system": "freebsd-14", **ends, **timed}
    if recipe.kind == "fact":
        return {"programs": [("gzip", ""), ("iperf3", "--version")], "qdiscs": []}
    if recipe.name == "network":
        return {"interfaces": ("em1", "em2"), "addresses": ["172.16.11.2", "fd00::2"]}
    return {"folder": "/tmp/samovar/full-20260101-000000/trial", "campaign": "full-20260101-000000"}


def bottleneck(path: PathPlan = PATH) -> Mapping[str, object]:
    """Return the values of recipe `bottleneck` for a FreeBSD router."""
    return bottleneck_values(path, ROUTER, 1500, CATALOGUE)


def recipes(release: str) -> Iterator[Recipe]:
    """Yield every recipe that only FreeBSD has at a release, or that has lines only for FreeBSD."""
    system = f"freebsd-{release}"
    for kind in KINDS:
        for name in sorted(CATALOGUE.names(kind, system)):
            recipe = CATALOGUE.recipe(kind, name, system)
            own = recipe.path.parents[1].name.startswith("freebsd")
            if own or "system.startswith(" in recipe.path.read_text():
                yield recipe


def prelude() -> str:
    """Render the text with which every script of a FreeBSD host begins."""
    values = {"folder": "/tmp/samovar-test/x", "campaign": "c"}
    names = ("prelude", "listening", "clock")
    return "".join(CATALOGUE.recipe("step", n, "freebsd").render("script", values) for n in names)


@cache
def _recorded_entries(release: str) -> list[dict[str, object]]:
    recorded: list[dict[str, object]] = json.loads((TRACES / f"{release}.json").read_text())
    return recorded


def recorded_output(release: str, command: str, turn: int = 0, stream: str = "stdout") -> str:
    """Return the recorded output of a command on a FreeBSD host; `turn` counts its repetitions from 0."""
    answers = [str(entry[stream]) for entry in _recorded_entries(release) if entry["command"] == command]
    return answers[turn]


def replay(script: str, answers: Mapping[str, str], *more: str) -> subprocess.CompletedProcess[str]:
    """Run shell text of a recipe in dash, with functions that print the recorded output of commands.

    Other calls of the programs in `answers` fail. `more` are lines that run before the text.
    """
    programs = sorted({command.split()[0] for command in answers})
    lines = [_program(program, answers) for program in programs]
    text = "\n".join([functions(), *lines, *more, script])
    return subprocess.run(["dash"], input=text, text=True, capture_output=True, check=False, timeout=30)


def kernel(values: Mapping[str, object]) -> str:
    """Return a shell function sysctl() that has these values, and prints each assignment to standard error."""
    return "\n".join([*(f"o_{oid.replace('.', '_')}='{value}'" for oid, value in values.items()), SYSCTL])


SYSCTL = r"""
sysctl() {
  y_names=yes y_code=0
  [ "$1" != -n ] || { y_names=''; shift; }
  for y_one; do
    y_oid=${y_one%%=*} y_rest=${y_one%%=*} y_key=o
    while [ -n "$y_rest" ]; do
      y_key=${y_key}_${y_rest%%.*}
      case $y_rest in *.*) y_rest=${y_rest#*.} ;; *) y_rest='' ;; esac
    done
    eval "y_now=\${$y_key-none}"
    [ "$y_now" != none ] || { echo "sysctl: unknown oid '$y_oid'" >&2; y_code=1; continue; }
    case $y_one in
      *=*) eval "$y_key=\${y_one#*=}"; echo "$y_one" >&2; echo "$y_oid: $y_now -> ${y_one#*=}" ;;
      *) echo "${y_names:+$y_oid: }$y_now" ;;
    esac
  done
  return "$y_code"
}"""


@cache
def functions() -> str:
    """Return the functions that FreeBSD's scripts share, without the lines that create a trial's folder."""
    script = CATALOGUE.recipe("step", "listening", "freebsd").render("script", {})
    return "set -u\nfail() { printf '%s\\n' \"$*\" >&2; exit 1; }\n" + script


def run_logger(name: str, programs: Mapping[str, str], folder: Path, **values: object) -> list[str]:
    """Run a logger for a moment, and return the lines of its trace.

    Each of `programs` prints its text or, if the text starts with `!`, executes it.
    """
    (folder / "bin").mkdir()
    for program, text in {"stat": "t 1795271645.5", "ifconfig": "", **programs}.items():
        body = text[1:] if text.startswith("!") else f"cat <<'EOF'\n{text}EOF"
        (folder / "bin" / program).write_text(f"#!/bin/sh\n{body}\n")
        (folder / "bin" / program).chmod(0o755)
    script = (
        f"{logger_script(name, folder, **values)}\n"
        f"until [ -e src-{name}.ready ]; do sleep 0.02; done; sleep 0.1; kill $!; wait\n"
    )
    subprocess.run(["dash", "-c", script], check=True, capture_output=True, timeout=30)
    return (folder / f"src-{name}.csv").read_text().splitlines()


def logger_script(name: str, folder: Path, **values: object) -> str:
    """Return shell text that starts a logger in a folder, with the folder's `bin` first in PATH."""
    recipe = CATALOGUE.recipe("logger", name, "freebsd")
    start = recipe.render("start", {**values_of(recipe), "interval_s": 0.05, **values})
    return (
        f"cd '{folder}'; PATH='{folder}/bin':$PATH\n"
        'launch() { l_output=$3; l_err=$1.err; shift 3; "$@" >"$l_output" 2>"$l_err" & }\n'
        f"{start}"
    )


def _program(name: str, answers: Mapping[str, str]) -> str:
    cases = "".join(
        f"{_quote(command)}) {_printing(text)} ;;\n"
        for command, text in answers.items()
        if command.split()[0] == name
    )
    return f'{name}() {{ case "{name}${{*:+ $*}}" in\n{cases}*) echo "nobody recorded: {name} $*" >&2; return 127 ;;\nesac; }}'


def _printing(text: str) -> str:
    body = text.rstrip("\n")
    return f"cat <<'THE-END'\n{body}\nTHE-END\n" if body else ":"


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
