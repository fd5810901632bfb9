"""The scripts of a trial start few programs on FreeBSD hosts, because each program took about 0.1 s there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from samovar.campaign.host_state import parse_state, unmet
from samovar.recipes import TrialScripts, split_finish_output
from samovar.recipes.scripts import BODY
from tests.unit.recipes.freebsd_sample import CATALOGUE, PLAIN, functions, prelude, recorded_output
from tests.unit.trials import RESOLVED, TRIAL

OIDS = {
    "kern.boottime": "{ sec = 1795269674, usec = 400099 } Sun Nov 22 03:21:14 2026",
    "kern.cp_times": "1 2 3 4 5",
    "kern.hz": "1000",
    "kern.ipc.maxsockbuf": "2097152",
    "net.bpf.maxbufsize": "524288",
    "net.inet.ip.dummynet.expire": "1",
    "net.inet.ip.dummynet.pipe_byte_limit": "1048576",
    "net.inet.ip.dummynet.pipe_slot_limit": "100",
    "net.inet.ip.forwarding": "0",
    "net.inet.ip.fw.enable": "1",
    "net.inet.ip.fw.one_pass": "1",
    "net.inet.tcp.cc.algorithm": "cubic",
    "net.inet.tcp.ecn.enable": "2",
    "net.inet.tcp.hostcache.enable": "1",
    "net.inet.tcp.hostcache.expire": "3600",
    "net.inet.tcp.hostcache.prune": "300",
    "net.inet.tcp.hostcache.purgenow": "1",
    "net.inet.tcp.recvbuf_auto": "1",
    "net.inet.tcp.recvbuf_max": "2097152",
    "net.inet.tcp.recvspace": "65536",
    "net.inet.tcp.rfc1323": "1",
    "net.inet.tcp.sack.enable": "1",
    "net.inet.tcp.sendbuf_max": "2097152",
    "net.inet.tcp.sendspace": "32768",
    "net.inet.tcp.tso": "1",
    "net.inet6.ip6.forwarding": "0",
}
"""Values of sysctls on FreeBSD 14.0."""
HOST = """
import fcntl, json, os, pathlib, sys
name, *words = [os.path.basename(sys.argv[0]), *sys.argv[1:]]
code, lock, file = 0, open(HERE + "/lock", "w"), pathlib.Path(HERE, "state.json")
fcntl.flock(lock, fcntl.LOCK_EX)  # programs of a pipe run at the same time
state = json.loads(file.read_text())
state["log"].append(name)
if name == "sysctl":
    bare = words[0] == "-n"
    for word in words[bare:]:
        oid, equals, value = word.partition("=")
        if oid not in state["oids"]:
            print(f"sysctl: unknown oid '{oid}'", file=sys.stderr)
            code = 1
        elif equals:
            print(f"{oid}: {state['oids'][oid]} -> {value}")
            state["oids"][oid] = value
        else:
            print(state["oids"][oid] if bare else f"{oid}: {state['oids'][oid]}")
elif name == "ifconfig":
    flags = {"-lro": False, "lro": True}
    changes = flags.keys() & set(words)
    if changes:
        state["lro"] = flags[changes.pop()]
    else:
        print(state["shown"] if state["lro"] else state["shown"].replace(",LRO", ""))
elif name == "ipfw":
    if words[:2] == ["-q", "add"]:
        state["rules"].append([words[2], " ".join(words[3:])])
    elif words[:2] == ["-q", "delete"]:
        state["rules"] = [rule for rule in state["rules"] if rule[0] not in words]
    elif words == ["list"]:
        print("".join(f"{int(number):05d} {rule}\\n" for number, rule in state["rules"]), end="")
elif name == "route":
    print(state["route"], end="")
file.write_text(json.dumps(state))
lock.close()
if name == "awk":
    os.execv("/usr/bin/awk", ["awk", *words])
sys.exit(code)
"""
PROGRAMS = ("awk", "ifconfig", "ipfw", "kldstat", "netstat", "route", "sysctl")


@dataclass
class Host:
    """Stand-ins for the programs of a FreeBSD 14 host, which store the settings and count their calls."""

    folder: Path

    def __post_init__(self) -> None:
        shown, route = (
            recorded_output("14.0", "ifconfig em1").rstrip(),
            recorded_output("14.0", "route -n get 172.16.11.2"),
        )
        state = {"log": [], "oids": OIDS, "lro": True, "shown": shown, "rules": [], "route": route}
        (self.folder / "state.json").write_text(json.dumps(state))
        text = f"#!{sys.executable} -IS\n{HOST.replace('HERE', repr(str(self.folder)))}"
        for name in PROGRAMS:
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o755)

    def run(self, script: str) -> tuple[str, int]:
        """Run the body of a script; return its output and the number of programs that it started."""
        started = len(self.state()["log"])
        each_line = prelude()[prelude().index("each_line() {") :].partition("\n}\n")[0] + "\n}\n"
        waits = 'halt() { :; }\nawait() { shift; "$@" || :; }\n'
        text = f"dir={self.folder}/trial; mkdir -p $dir; cd $dir\nPATH={self.folder}:$PATH\n{functions()}\n{each_line}{waits}"
        text += script.partition(BODY)[2]
        done = subprocess.run(["dash"], input=text, text=True, capture_output=True, check=True)
        assert done.stderr == ""
        return done.stdout, len(self.state()["log"]) - started

    def set_oids(self, oids: Mapping[str, str]) -> None:
        """Replace the values of all sysctls."""
        (self.folder / "state.json").write_text(json.dumps({**self.state(), "oids": oids}))

    def state(self) -> dict[str, Any]:
        """Return the stored state of the host."""
        stored: dict[str, Any] = json.loads((self.folder / "state.json").read_text())
        return stored


def scripts() -> TrialScripts:
    """Return the scripts of the sample trial on FreeBSD hosts, with a rate downstream and delays both ways."""
    system = {"os": "freebsd", "release": "14.0", "mtu_bytes": None, "rwnd_bytes": None}
    cards = {"src": ("em1",), "rtr": ("em1", "em2"), "dst": ("em1",)}
    hosts = {
        name: one.model_copy(update={**system, "interfaces": cards[name]})
        for name, one in RESOLVED.hosts.items()
    }
    down = PLAIN.down.model_copy(update={"loss": 0.0, "reorder": 0.0, "interface": "em2"})
    up = PLAIN.up.model_copy(update={"interface": "em1", "rate_bps": None, "aqm": None})
    path = PLAIN.model_copy(update={"router": "rtr", "down": down, "up": up})
    changes = {"hosts": hosts, "path": path, "loggers": (), "mtu_bytes": None}
    source = RESOLVED.model_copy(update=changes)
    return TrialScripts(replace(TRIAL, source=source), CATALOGUE, "c")


@pytest.mark.parametrize(
    ("host", "read", "set_", "finish"), [("src", 2, 13, 16), ("dst", 2, 11, 15), ("rtr", 7, 17, 28)]
)
def test_reading_setting_and_restoring_a_host_starts_few_programs(
    tmp_path: Path, host: str, read: int, set_: int, finish: int
) -> None:
    machine, trial = Host(tmp_path), scripts()
    oids = {**OIDS, "net.inet.ip.forwarding": str(int(host == "rtr"))}
    machine.set_oids(oids)
    before, programs = machine.run(trial.read(host))
    assert programs <= read
    was = parse_state(before)
    as_set, programs = machine.run(trial.set(host, was))
    assert programs <= set_
    kept = [line for line in trial.wanted(host) if not line.startswith(("pipe.", "queue."))]
    assert unmet(kept, parse_state(as_set)) == ()
    printed, programs = machine.run(trial.finish(host, was))
    assert programs <= finish
    _, found, restored = split_finish_output(printed)
    assert parse_state(found) == parse_state(as_set)
    assert parse_state(restored) == was
    state = machine.state()
    assert (state["oids"], state["lro"], state["rules"]) == (oids, True, [])


def test_a_host_without_the_sysctl_of_the_host_cache_is_read_and_restored(tmp_path: Path) -> None:
    machine, trial = Host(tmp_path), scripts()
    older = {oid: value for oid, value in OIDS.items() if oid != "net.inet.tcp.hostcache.enable"}
    machine.set_oids(older)
    was = parse_state(machine.run(trial.read("src"))[0])
    assert (was["net.inet.tcp.hostcache.enable"], was["hostcache.enabled"]) == ("absent", "no")
    machine.run(trial.set("src", was))
    machine.run(trial.restore("src", was))
    assert machine.state()["oids"] == older
