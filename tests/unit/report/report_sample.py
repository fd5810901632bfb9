"""Write a made-up campaign folder for tests of the report.

Every value below is invented; tests in tests/lab make reports of real campaigns.
"""

from __future__ import annotations

import csv
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from samovar.plan import Plan, Resolved, Trial
from tests.unit.plan_values import shared_trials

Json = dict[str, Any]
T0 = 1795271645.0  # 21 November 2026, 14:34:05 UTC
NAME = "quick-20261121-143405"

EXPERIMENT = """\
experiment: tplink-buffer
title: Buffer of the TP-Link TL-PA211KIT by two methods, and TCP over it
source: CAIA-TR-130417A
testbed: lab
traffic: [{flow: bulk, generator: nuttcp, from: sender, to: receiver}]
expect:
  - {say: Method 1 finds the buffer, metric: buffer_method1_packets, part: buffer, equals: 546, within: 2%, source: tplink-buffer}
  - {say: Method 2 finds the buffer, metric: buffer_method2_packets, part: buffer, equals: 546, within: 2%, source: tplink-buffer}
  - {say: CDG keeps the queue short, metric: rtt_median_ms, part: window, where: {cc: cdg}, below: 20, source: tplink-cc}
  - {say: NewReno's RTT is at least five times CDG's, metric: rtt_median_ms, part: window, where: {cc: newreno, rwnd: 9999KB}, relative_to: {cc: cdg}, above: 5, source: tplink-vs-netgear}
  - {say: CDG has most of the throughput of the loss-based CCs, metric: throughput_bps, part: window, where: {cc: cdg}, relative_to: {cc: newreno}, above: 0.85, source: tplink-cc}
  - {say: The bottleneck is full, metric: throughput_bps, part: window, where: {cc: [newreno, cubic]}, between: [39000000, 40000000], source: tplink-cc}
  - {say: Vegas keeps the queue short too, metric: rtt_median_ms, part: window, where: {cc: vegas}, below: 20, source: xavb2001-cc}
"""

THREE_HOSTS = """\
testbed: lab
description: Sender, bottleneck router and receiver in one kernel.
lab: {kernel: auto, memory: 512MB}
hosts:
  src: {os: linux, role: sender, address: 10.64.0.11, interfaces: {eth1: {address: 172.16.10.2/24, link: left}}}
  rtr:
    os: linux
    role: router
    address: 10.64.0.12
    interfaces:
      eth1: {address: 172.16.10.1/24, link: left}
      eth2: {address: 172.16.11.1/24, link: right}
  dst: {os: linux, role: receiver, address: 10.64.0.13, interfaces: {eth1: {address: 172.16.11.2/24, link: right}}}
bottleneck: {router: rtr, from: eth1, to: eth2}
"""


def dumbbell(pairs: int, shared: bool = True) -> str:
    """Return a testbed of senders and receivers around a router. They share two links, or each host has its own link."""
    hosts = []
    ports = []
    for index in range(1, pairs + 1):
        left, right = ("left", "right") if shared else (f"left{index}", f"right{index}")
        for side, name, role, net in ((left, "src", "sender", 10), (right, "dst", "receiver", 20)):
            subnet = net if shared else net + index
            address = f"172.16.{subnet}.{index + 1}/24"
            hosts.append(
                f"  {name}{index}: {{os: linux, role: {role}, address: 10.64.0.{net + index},"
                f" interfaces: {{eth1: {{address: {address}, link: {side}}}}}}}"
            )
            if not shared or index == 1:
                ports.append((side, f"172.16.{subnet}.1/24"))
    lines = [
        f"      eth{n}: {{address: {address}, link: {side}}}" for n, (side, address) in enumerate(ports, 1)
    ]
    router = [
        "  rtr:",
        "    os: linux",
        "    role: router",
        "    address: 10.64.0.10",
        "    interfaces:",
        *lines,
    ]
    bottleneck = "bottleneck: {router: rtr, from: eth1, to: eth2}"
    head = ["testbed: dumbbell", "description: Hosts around one router.", "hosts:"]
    return "\n".join([*head, *hosts, *router, bottleneck]) + "\n"


@dataclass
class Sample:
    """Options of a sample campaign."""

    testbed: str = THREE_HOSTS
    title: str = "Buffer of the TP-Link TL-PA211KIT by two methods, and TCP over it"
    description: str = (
        "A made-up sample. Estimates the bottleneck's buffer at three MTUs by two independent methods, from the"
        " round-trip time before a congestion window collapses and from the window itself, and shows throughput and"
        " round-trip time against the receive window for three congestion controls."
    )
    experiment: str = EXPERIMENT
    finished: bool = True
    not_run: int = 0
    replicates: int = 2
    hostile: str = ""
    verdicts: dict[int, tuple[str, list[str]]] = field(
        default_factory=lambda: {
            4: ("suspect", ["clock of dst moved by 12 ms during the trial"]),
            9: ("invalid", ["dst: 312 packets dropped by the capture"]),
        }
    )


def write_campaign(results: Path, sample: Sample | None = None, figures: Path | None = None) -> Path:
    """Write a sample campaign with its analysis into a results folder; `figures` has the PDFs of its figures."""
    sample = sample or Sample()
    folder = results / "tplink-buffer" / NAME
    plan = make_plan(sample)
    folder.mkdir(parents=True)
    (folder / "plan.json").write_bytes(plan_bytes(plan))
    (folder / "experiment.yaml").write_text(sample.experiment)
    (folder / "testbed.yaml").write_text(sample.testbed)
    dump(folder / "provenance.json", make_provenance(sample))
    run = plan["trials"][: len(plan["trials"]) - sample.not_run]
    for index, trial in enumerate(run):
        write_trial(folder, trial, index, sample)
    write_journal(folder / "journal.jsonl", run, sample)
    write_analysis(folder, plan, sample, figures)
    return folder


def share_between_testbeds(folder: Path) -> None:
    """Change a campaign to one that ran on two testbeds: `lab`, and `twin` with another kernel."""
    plan, provenance = folder / "plan.json", folder / "provenance.json"
    dump(plan, {**json.loads(plan.read_text()), "testbed": "lab,twin"})
    testbed = (folder / "testbed.yaml").read_text()
    for name, text in (("lab", testbed), ("twin", testbed.replace("testbed: lab", "testbed: twin"))):
        (folder / "testbeds" / name).mkdir(parents=True)
        (folder / "testbeds" / name / "testbed.yaml").write_text(text)
    recorded = json.loads(provenance.read_text())
    host = {"kernel": "Linux 6.12.9", "os_release": "Debian 13", "tools": {}}
    twin = {"lab": {"kernel": "native"}, "hosts": dict.fromkeys(recorded["hosts"], host)}
    dump(provenance, {**recorded, "others": {"twin": twin}})


def dump(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1))


PARTS: dict[str, dict[str, list[str]]] = {
    "buffer": {"cc": ["newreno"], "rwnd": ["9999KB"], "mtu": ["600", "1200", "1500"]},
    "window": {
        "cc": ["newreno", "cubic", "cdg"],
        "rwnd": ["50KB", "200KB", "600KB", "9999KB"],
        "mtu": ["1500"],
    },
}
TITLES = {"buffer": "Buffer by two methods", "window": "Throughput and RTT against the receive window"}


def make_plan(sample: Sample) -> Json:
    trials = [
        make_trial(part, {"cc": cc, "rwnd": rwnd, "mtu": mtu}, replicate)
        for part, factors in PARTS.items()
        for replicate in range(1, sample.replicates + 1)
        for cc in factors["cc"]
        for rwnd in factors["rwnd"]
        for mtu in factors["mtu"]
    ]
    return {
        "schema": 2,
        "experiment": "tplink-buffer",
        "title": sample.title,
        "source": "CAIA-TR-130417A",
        "description": sample.description,
        "profile": "quick",
        "testbed": yaml.safe_load(sample.testbed)["testbed"],
        "seed": 20130417,
        "order": "blocked",
        "parts": [
            {"name": name, "title": TITLES[name], "factors": factors, "replicates": sample.replicates}
            for name, factors in PARTS.items()
        ],
        "figures": [
            {"figure": "throughput-by-rwnd", "part": "window"},
            {"figure": "rtt-by-rwnd", "part": "window"},
        ],
        "tables": [{"table": "buffer-estimates", "part": "buffer"}],
        "trials": trials,
    }


def plan_bytes(plan: Json) -> bytes:
    """Return the bytes of plan.json for a plan in which every trial has all its values."""
    trials = [
        Trial(
            **{key: one[key] for key in one if key != "resolved"},
            source=Resolved.model_validate(one["resolved"]),
        )
        for one in plan["trials"]
    ]
    return Plan.model_validate({**plan, "trials": shared_trials(trials)}).to_json()


def make_trial(part: str, treatment: dict[str, str], replicate: int) -> Json:
    name = f"{part}-{'-'.join(treatment.values())}-r{replicate}-3f9a1c"
    down = {
        "interface": "eth2", "rate_bps": 40_000_000, "delay_s": 0.001, "loss": 0.0, "aqm": "pfifo",
        "buffer_packets": 546, "buffer_bytes": None,
    }  # fmt: skip
    up = {"interface": "eth1", "rate_bps": None, "delay_s": 0.001}
    path = {"router": "rtr", "rtt_s": 0.002, "down": down, "up": up}
    flow = {
        "label": "bulk", "generator": "nuttcp", "from": "src", "to": "dst", "from_address": "172.16.10.2",
        "to_address": "172.16.11.2", "port": 5001, "start_s": 0.0, "duration_s": 15.0, "size_bytes": None,
    }  # fmt: skip
    resolved = {
        "mtu_bytes": int(treatment["mtu"]),
        "duration_s": 15.0,
        "deadline_s": 30.0,
        "path": path,
        "hosts": {},
        "flows": [flow],
        "captures": [{"host": host, "interface": "eth1", "snaplen_bytes": 96} for host in ("src", "dst")],
        "loggers": [
            {"logger": "tcp-info", "host": "src", "interface": "eth1", "interval_s": 0.01},
            {"logger": "queue", "host": "rtr", "interface": "eth2", "interval_s": 0.005},
        ],
    }
    treated = {"part": part, "treatment": treatment, "replicate": replicate, "block": replicate}
    return {"id": name, **treated, "resolved": resolved}


def make_provenance(sample: Sample) -> Json:
    tools = {"tcpdump": "4.99.3", "iperf3": "3.12", "nuttcp": "8.2.2", "ss": "iproute2-6.1.0"}
    host = {"kernel": "Linux 6.1.0-um", "os_release": "Debian 12", "tools": tools}
    return {
        "controller": {
            "samovar": "0.1.0",
            "python": "3.11.2",
            "kernel": "6.1.0-18-amd64",
            "packages": {"fabric": "3.2.3", "paramiko": "5.1.0"},
        },
        "git": {
            "revision": "249bb44c6a8baa81b6e486d8eac2e9fcbd86154a",
            "modified": True,
        },
        "testbed": "lab",
        "lab": {"kernel": "uml", "memory": "512MB"},
        "hosts": dict.fromkeys(yaml.safe_load(sample.testbed)["hosts"], host),
    }


PHASES = {
    "read": 0.21,
    "set": 0.43,
    "arm": 0.22,
    "traffic": 15.0,
    "restore": 0.2,
    "stop": 0.01,
    "collect": 0.34,
}


def write_trial(folder: Path, trial: Json, index: int, sample: Sample) -> None:
    verdict, reasons = sample.verdicts.get(index, ("valid", []))
    home = folder / "trials" / trial["id"]
    slower = 1 + (index % 7) / 40
    phases = [{"phase": name, "seconds": seconds * slower} for name, seconds in PHASES.items()]
    start = T0 + 18 * index
    manifest = {
        **trial, "schema": 1, "attempt": 2 if index == 9 else 1, "outcome": "completed", "verdict": verdict,
        "reasons": [reason + sample.hostile for reason in reasons], "t_start_s": start, "t_end_s": start + 15,
        "phases": phases, "overhead_s": sum(one for name, one in PHASES.items() if name != "traffic") * slower,
        "checks": [], "files": [],
    }  # fmt: skip
    dump(home / "manifest.json", manifest)
    commands = home / "commands"
    commands.mkdir()
    for number, (host, phase) in enumerate(
        [("src", "read"), ("src", "set"), ("rtr", "set"), ("dst", "restore")]
    ):
        (commands / f"{number:03d}-{host}-{phase}.sh").write_text(script(host, sample.hostile))
        dump(
            commands / f"{number:03d}-{host}-{phase}.json",
            {"host": host, "step": phase, "exit_code": 0, "seconds": 0.12},
        )


def script(host: str, hostile: str) -> str:
    """Return a script with a long line; the script of the router is longer than a page."""
    lines = [
        "#!/bin/sh",
        "set -eu",
        f"# {host} {hostile}",
        "sysctl -w net.ipv4.tcp_congestion_control='reno'",
    ]
    lines.append("ethtool -K 'eth1' tso off gso off gro off lro off " + "rx off tx off sg off " * 6)
    if host == "rtr":
        lines += [
            f"tc qdisc replace dev 'eth2' root handle {n}: tbf rate 40mbit burst 3028 limit 819000"
            for n in range(90)
        ]
    return "\n".join(lines) + "\n"


def write_journal(file: Path, run: list[Json], sample: Sample) -> None:
    events: list[Json] = [{"t_s": T0 - 2, "event": "campaign-started"}]
    for index, trial in enumerate(run):
        t_s = T0 + 18 * index
        events.append({"t_s": t_s, "event": "trial-started", "id": trial["id"], "attempt": 1})
        ended = {"t_s": t_s + 17, "event": "trial-finished", "id": trial["id"], "outcome": "completed"}
        events.append({**ended, "verdict": sample.verdicts.get(index, ("valid", []))[0], "reasons": []})
    last = {"event": "campaign-finished", "completed": len(run), "failed": 0}
    events.append(
        {"t_s": T0 + 18 * len(run), **(last if sample.finished else {"event": "campaign-interrupted"})}
    )
    file.write_text("".join(json.dumps(event) + "\n" for event in events))


ROWS = [
    ("buffer", "newreno", "9999KB", "600", "buffer_method1_packets", "packets", 546.4, 541.2, 550.9, 8),
    ("buffer", "newreno", "9999KB", "1200", "buffer_method1_packets", "packets", 544.1, 540.0, 548.8, 8),
    ("buffer", "newreno", "9999KB", "1500", "buffer_method1_packets", "packets", 545.0, 541.7, 549.3, 8),
    ("buffer", "newreno", "9999KB", "600", "buffer_method2_packets", "packets", 546.0, 546.0, 547.0, 8),
    ("buffer", "newreno", "9999KB", "1200", "buffer_method2_packets", "packets", 560.0, 546.0, 562.0, 8),
    ("buffer", "newreno", "9999KB", "1500", "buffer_method2_packets", "packets", 547.0, 546.0, 548.0, 8),
    ("window", "newreno", "9999KB", "1500", "rtt_median_ms", "ms", 133.2, 131.0, 137.1, 5),
    ("window", "cubic", "9999KB", "1500", "rtt_median_ms", "ms", 151.9, 149.0, 155.0, 5),
    ("window", "cdg", "9999KB", "1500", "rtt_median_ms", "ms", 11.71, 11.2, 12.4, 5),
    ("window", "cdg", "50KB", "1500", "rtt_median_ms", "ms", 8.94, None, None, 2),
    ("window", "newreno", "9999KB", "1500", "throughput_bps", "bps", 39_412_345.6, 39.3e6, 39.5e6, 5),
    ("window", "cubic", "9999KB", "1500", "throughput_bps", "bps", 39_502_211.0, 39.4e6, 39.6e6, 5),
    ("window", "cdg", "9999KB", "1500", "throughput_bps", "bps", 35_881_002.5, 35.1e6, 36.2e6, 5),
]  # fmt: skip


def write_summary(file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["part", "cc", "rwnd", "mtu", "metric", "unit", "median", "mean", "lo", "hi", "n"])
        for part, cc, rwnd, mtu, metric, unit, median, lo, hi, n in ROWS:
            bounds = ["NA" if bound is None else bound for bound in (lo, hi)]
            writer.writerow([part, cc, rwnd, mtu, metric, unit, median, median, *bounds, n])


def write_analysis(folder: Path, plan: Json, sample: Sample, figures: Path | None) -> None:
    write_summary(folder / "tables" / "summary.csv")
    bundle = folder / "bundle"
    (bundle / "data").mkdir(parents=True)
    (bundle / "figures").mkdir()
    made = []
    for name, title in (
        ("throughput-by-rwnd", "Median throughput against rwnd"),
        ("rtt-by-rwnd", "Median RTT against rwnd"),
    ):
        source = figures / f"{name}.pdf" if figures else None
        target = bundle / "figures" / f"{name}.pdf"
        target.write_bytes(source.read_bytes() if source else b"")
        (bundle / "data" / f"{name}.csv").write_text(
            "cc,rwnd_bytes,rtt_ms\nnewreno,50000,8.1\ncdg,50000,7.9\n"
        )
        caption = "Each point is the median over replicates; bars are 95 % intervals." + sample.hostile
        made.append({
            "name": name, "file": f"figures/{name}.pdf", "title": title, "caption": caption, "width_in": 6.0,
            "height_in": 3.6, "data": f"data/{name}.csv", "trials": [t["id"] for t in plan["trials"][:24]],
            "layout": {"kind": "points", "x": "rwnd_bytes", "y": "median", "low": "lo", "high": "hi", "curve": "curve"},
        })  # fmt: skip
    dump(bundle / "figures.json", made)
    dump(bundle / "tables.json", [sample_table(sample)])
    (bundle / "data" / "buffer-estimates.csv").write_text(
        "mtu_bytes,method1_packets\n600,546.4\n1200,544.1\n"
    )
    dump(bundle / "analysis.json", {
        "r_version": "4.2.2", "packages": {"data.table": "1.14.8", "ggplot2": "3.4.1", "samovar": "0.1.0"},
        "trials_used": [t["id"] for t in plan["trials"][:28]],
        "trials_left_out": [{"id": plan["trials"][9]["id"], "reason": "invalid"}],
    })  # fmt: skip


def sample_table(sample: Sample) -> Json:
    columns = [("MTU (B)", "right"), ("Method 1 (packets)", "right"), ("Method 2 (packets)", "right"),
               ("Queue sampler (packets)", "right"), ("Note", "left")]  # fmt: skip
    return {
        "name": "buffer-estimates", "title": "Median buffer size estimates", "data": "data/buffer-estimates.csv",
        "caption": "Method 1 from RTT and throughput, method 2 from cwnd before a collapse.", "trials": 6,
        "columns": [{"name": name, "align": align} for name, align in columns],
        "rows": [["600", "546.4", "546", "546", sample.hostile], ["1200", "544.15", "560", "546", ""],
                 ["1500", "545", "547", "546", ""]],
    }  # fmt: skip


R_FIGURE = """
args <- commandArgs(TRUE)
for (name in c("throughput-by-rwnd", "rtt-by-rwnd")) {
  cairo_pdf(file.path(args[1], paste0(name, ".pdf")), 6, 3.6)
  plot(c(50, 200, 600, 9999), c(8, 38, 118, 133), log = "x", type = "b", xlab = "rwnd (KB)", ylab = name)
  dev.off()
}
"""


def set_layout(campaign: Path, figure: str, **layout: object) -> None:
    """Replace the layout of a figure of a campaign."""
    file = campaign / "bundle" / "figures.json"
    figures = json.loads(file.read_text())
    dump(file, [one | {"layout": layout} if one["name"] == figure else one for one in figures])


def draw_figures(folder: Path) -> Path:
    """Draw the figures of the sample with R, as vector PDF."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["Rscript", "--vanilla", "-e", R_FIGURE, str(folder)], check=True, capture_output=True, timeout=120
    )
    return folder
