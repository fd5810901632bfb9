"""Make a campaign of a TEACUP results folder: flows from captures, treatments from test ids, traces.

Nothing recorded what was in force, so every trial is suspect: it is analysed, and marked.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import yaml

from samovar import __version__
from samovar.atomic_files import write_json, write_whole
from samovar.campaign import PLAN, point_latest
from samovar.campaign.collection import commit_trial, digests, sha256_of, sums_digest
from samovar.campaign.journal import NAME as JOURNAL
from samovar.campaign.journal import Journal
from samovar.campaign.verdict import Check
from samovar.errors import CampaignError
from samovar.plan import (
    CapturePlan,
    Component,
    Components,
    FlowPlan,
    HostPlan,
    LoggerPlan,
    PartPlan,
    Plan,
    PlanValue,
    RunPlan,
    Slot,
    Treatments,
    Trials,
)
from samovar.teacup.result_files import (
    Stream,
    TrialFiles,
    addresses_of,
    find_trials,
    read_snaplen,
    read_streams,
    read_text,
    ttprobe_as_tcp_probe,
    web10g_as_tcp_info,
)

REASON = "imported from TEACUP: nothing recorded that the settings of its test id were in force"
RUN = "run"
GENERATOR = "teacup"
"""The generator of every flow: captures do not tell which program sent it."""
LOGS = {
    "siftr": ("siftr", None),
    "web10g": ("tcp-info", web10g_as_tcp_info),
    "ttprobe": ("tcp-probe", ttprobe_as_tcp_probe),
}
"""TEACUP's logs of TCP: the logger here whose trace they become, and how; SIFTR's is read as it is."""
FIGURES = ("throughput-cdf", "rtt-cdf", "sender-cdf", "trial-time-series")
TABLE = {"table": "treatments", "metrics": ["throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share"]}
OWN_FILES = ("plan.json", "provenance.json", "*.yaml")


Key = tuple[tuple[tuple[str, str], ...], int]
"""The levels and the replicate of a trial."""
FlowKey = tuple[str, str, str, int]
"""The protocol, sender, receiver and port of a flow."""


@dataclass
class OldTrial:
    """A trial of TEACUP: its levels by short name, its replicate, its hosts' addresses and its flows."""

    files: TrialFiles
    levels: Mapping[str, str]
    replicate: int
    interfaces: Mapping[str, Mapping[str, str]]
    flows: list[tuple[Stream, str, str]] = field(default_factory=list)
    damaged: set[Path] = field(default_factory=set)

    @property
    def captures(self) -> dict[str, Path]:
        """The readable capture of each end host."""
        found = {
            host: own[name]
            for host, own in self.files.hosts.items()
            for name in ("dmp.gz", "dmp")
            if name in own
        }
        return {host: file for host, file in found.items() if host and file not in self.damaged}

    @property
    def start_s(self) -> float:
        """When the first flow began."""
        return min(stream.first_s for stream, _, _ in self.flows)

    @property
    def end_s(self) -> float:
        """When the last flow ended."""
        return max(stream.last_s for stream, _, _ in self.flows)


@dataclass(frozen=True)
class ImportedResults:
    """The campaign that was made, its number of trials, and what was left out."""

    folder: Path
    trials: int
    notes: tuple[str, ...]


def import_results(source: Path, results: Path) -> ImportedResults:
    """Copy a results folder into results/NAME/teacup-TIME as a campaign; raises CampaignError."""
    if not source.is_dir():
        raise CampaignError(f"{source}: not a folder; give a results folder of TEACUP")
    notes: list[str] = []
    trials = sorted(_read_trials(source, notes), key=lambda one: one.start_s)
    if not trials:
        why = f" ({notes[0]})" if notes else ""
        raise CampaignError(f"{source}: no trial of TEACUP, with TESTID_HOST_uname.log.gz and captures{why}")
    name = re.sub(r"[^A-Za-z0-9-]+", "-", source.resolve().name).strip("-") or "teacup"
    folder = results / name / f"teacup-{datetime.fromtimestamp(trials[0].start_s, UTC):%Y%m%d-%H%M%S}"
    if folder.exists():
        raise CampaignError(f"{folder}: exists already; remove it to import these results again")
    notes += _write(trials, name, folder, source)
    return ImportedResults(folder, len(trials), tuple(notes))


# What a results folder holds


def _read_trials(source: Path, notes: list[str]) -> Iterator[OldTrial]:
    found = find_trials(source)
    prefix = _prefix([one.id for one in found], source.resolve().name)
    seen = set[Key]()
    ids = set[str]()
    for files in found:
        levels = _levels(files.id.removeprefix(prefix).strip("_"))
        run, key = levels.pop(RUN, ""), tuple(levels.items())
        first = int(run) + 1 if re.fullmatch("[0-9]{1,4}", run) else 1
        replicate = next(one for one in count(first) if (key, one) not in seen)
        trial = OldTrial(files, levels, replicate, _interfaces(files, notes))
        trial.flows = list(_flows(trial, notes))
        if trial.flows and files.id not in ids:
            seen.add((key, replicate))
            ids.add(files.id)
            yield trial
        else:
            why = "is there twice" if trial.flows else "no capture with a flow between its hosts"
            notes.append(f"{files.id}: {why}; left out")


def _prefix(ids: Sequence[str], folder: str) -> str:
    """Return what all test ids begin with: the name of the folder, or what is before the first parameter."""
    if all(one == folder or one.startswith(f"{folder}_") for one in ids):
        return folder
    words = [one.split("_") for one in ids]
    same = 0
    while all(len(one) > same + 1 and one[same] == words[0][same] for one in words) and words:
        same += 1
    while same and re.fullmatch("[A-Za-z]+", words[0][same - 1]):
        same -= 1  # the short name of a parameter, or a date
    return "_".join(words[0][:same]) if words else ""


def _levels(text: str) -> dict[str, str]:
    """Return the parameters of a test id: short names with values, alternating."""
    words = text.split("_") if text else []
    return dict(zip(words[::2], words[1::2], strict=False))


def _interfaces(files: TrialFiles, notes: list[str]) -> dict[str, dict[str, str]]:
    """Return the interface of each address, by host, from the outputs of ifconfig."""
    found = {}
    for host, own in files.hosts.items():
        log = own.get("ifconfig.log.gz") or own.get("ifconfig.log")
        if host and log is not None:
            try:
                found[host] = addresses_of(read_text(log))
            except CampaignError as error:
                notes.append(str(error))
        elif host:
            notes.append(f"{files.id}: {host} has no ifconfig log, so its addresses are unknown")
    return found


def _flows(trial: OldTrial, notes: list[str]) -> Iterator[tuple[Stream, str, str]]:
    """Yield the streams that carry data between two hosts, with their hosts; the larger direction of each."""
    host_of = {address: host for host, own in trial.interfaces.items() for address in own}
    best: dict[tuple[str, frozenset[tuple[str, int]]], Stream] = {}
    for file in trial.captures.values():
        try:
            streams = read_streams(file)
        except CampaignError as error:
            notes.append(f"{error}; left out")
            trial.damaged.add(file)
            continue
        for one in streams:
            ends = frozenset({(one.source, one.ports[0]), (one.destination, one.ports[1])})
            known = best.get((one.protocol, ends))
            if one.payload_bytes > 0 and (known is None or one.payload_bytes > known.payload_bytes):
                best[one.protocol, ends] = one
    largest: dict[tuple[str, str, str, int], Stream] = {}
    for one in best.values():
        if one.source in host_of and one.destination in host_of:
            key = (one.protocol, one.source, one.destination, min(one.ports))
            if key not in largest or one.payload_bytes > largest[key].payload_bytes:
                largest[key] = one
    for one in sorted(largest.values(), key=lambda one: one.first_s):
        yield one, host_of[one.source], host_of[one.destination]


# The campaign


def _write(trials: Sequence[OldTrial], name: str, folder: Path, source: Path) -> list[str]:
    roles = _roles(trials)
    plan = _plan(trials, name, roles)
    definition = {
        "experiment": name, "title": f"{name}, from TEACUP", "source": "TEACUP", "testbed": name,
        "description": plan.description,
        "traffic": [
            {"flow": label, "generator": GENERATOR, "from": key[1], "to": key[2], "port": key[3]}
            for key, label in _flow_labels(trials).items()
        ],
        "figures": list(FIGURES), "tables": [TABLE],
    }  # fmt: skip
    (folder / "trials").mkdir(parents=True)
    _write_yaml(folder / "experiment.yaml", definition)
    _write_yaml(folder / "testbed.yaml", _testbed(trials, name, roles))
    hosts = {host: {"kernel": _uname(trials[0].files, host)} for host in roles}
    write_json(
        folder / "provenance.json", {"controller": {"samovar": __version__}, "testbed": name, "hosts": hosts}
    )
    write_whole(folder / PLAN, plan.to_json())
    journal = Journal(folder / JOURNAL)
    with journal:
        journal.append("campaign-started", trials[0].start_s)
        journal.append("files-recorded", trials[0].start_s, files=digests(folder, *OWN_FILES))
        for old, planned in zip(trials, plan.trials, strict=True):
            journal.append("trial-started", old.start_s, id=old.files.id, attempt=1, testbed=name)
            _write_trial(old, planned.as_json(), name, folder)
            sums = sums_digest(folder / "trials" / old.files.id)
            end = {"outcome": "completed", "verdict": "suspect", "reasons": [REASON]}
            journal.append("trial-finished", old.end_s, id=old.files.id, **end, overhead_s=0.0, **sums)
        journal.append("campaign-finished", trials[-1].end_s, completed=len(trials), failed=0)
    point_latest(folder)
    skipped = sorted(
        one.name for one in source.rglob("*") if one.name.endswith(("_config.tar.gz", "_tpconf_vars.log.gz"))
    )
    return [f"{one}: not copied, as it holds passwords" for one in skipped]


def _write_yaml(file: Path, tree: Mapping[str, Any]) -> None:
    write_whole(file, yaml.safe_dump(dict(tree), sort_keys=False, allow_unicode=True).encode())


def _roles(trials: Sequence[OldTrial]) -> dict[str, str]:
    """Return the role of every host: a sender sends more than it receives, a router no data at all."""
    sent = Counter[str]()
    for trial in trials:
        for stream, sender, receiver in trial.flows:
            sent[sender] += stream.payload_bytes
            sent[receiver] -= stream.payload_bytes
    hosts = dict.fromkeys(host for trial in trials for host in trial.files.hosts if host)
    return {
        host: "router" if host not in sent else "sender" if sent[host] > 0 else "receiver" for host in hosts
    }


def _uname(files: TrialFiles, host: str) -> str:
    log = files.hosts.get(host, {}).get("uname.log.gz") or files.hosts.get(host, {}).get("uname.log")
    return " ".join(read_text(log).split())[:200] if log else ""


def _testbed(trials: Sequence[OldTrial], name: str, roles: Mapping[str, str]) -> dict[str, Any]:
    interfaces = {host: own for trial in reversed(trials) for host, own in trial.interfaces.items()}
    flows = (stream for trial in trials for stream, _, _ in trial.flows)
    networks = {_network(one) for stream in flows for one in (stream.source, stream.destination)}
    hosts = {
        host: {
            "os": _system(trials[0].files, host),
            "role": role,
            "address": host,
            "interfaces": {
                interface: {"address": f"{address}/24", "link": _network(address)}
                for address, interface in interfaces.get(host, {}).items()
                if _network(address) in networks
            },
        }
        for host, role in roles.items()
    }
    return {"testbed": name, "description": "Hosts of a TEACUP results folder.", "hosts": hosts}


def _network(address: str) -> str:
    """Return the name of the link of an address, whose network has 24 bits as TEACUP assumes."""
    return "net-" + "-".join(address.split(".")[:3])


def _system(files: TrialFiles, host: str) -> str:
    return "freebsd" if _uname(files, host).startswith("FreeBSD") else "linux"


def _plan(trials: Sequence[OldTrial], name: str, roles: Mapping[str, str]) -> Plan:
    """Return the plan whose trials are those of TEACUP, under their test ids."""
    names = list(dict.fromkeys(key for one in trials for key in one.levels))
    texts = [tuple(one.levels.get(key, "") for key in names) for one in trials]
    treatments = list(dict.fromkeys(texts))
    factors = {key: tuple(dict.fromkeys(row[at] for row in treatments)) for at, key in enumerate(names)}
    slots = [Slot(treatments.index(text), one.replicate, 1) for text, one in zip(texts, trials, strict=True)]
    replicates, labels = max(one.replicate for one in trials), _flow_labels(trials)
    places = {slot[:2]: one for slot, one in zip(slots, trials, strict=True)}
    components, columns = Components(), dict[str, list[list[Component]]]()
    for replicate in range(1, replicates + 1):
        for number in range(len(treatments)):
            # A replicate that is missing has the values of another one: no trial uses them.
            others = (one for key, one in places.items() if key[0] == number)
            old = places.get((number, replicate)) or next(others)
            for key, value in _components(old, roles, labels).items():
                several = columns.setdefault(key, [[] for _ in range(replicates)])
                several[replicate - 1].append(components.add(key, value))
    rows = [
        tuple(factors[key].index(text) for key, text in zip(names, row, strict=True)) for row in treatments
    ]
    return Plan(
        experiment=name,
        title=f"{name}, from TEACUP",
        source="TEACUP",
        description=f"{REASON[0].upper()}{REASON[1:]}.",
        profile=None,
        testbed=name,
        seed=1,
        order="sequential",
        figures=tuple({"figure": one} for one in FIGURES),
        tables=(TABLE,),
        parts=(PartPlan(name="main", title="", factors=factors, replicates=replicates),),
        trials=Trials([Treatments("main", factors, rows, columns)], [one.files.id for one in trials], slots),
    )


def _flow_key(flow: tuple[Stream, str, str]) -> FlowKey:
    stream, sender, receiver = flow
    return stream.protocol, sender, receiver, min(stream.ports)


def _flow_labels(trials: Sequence[OldTrial]) -> dict[FlowKey, str]:
    """Return the label of each flow: protocol and port, with the hosts if several have these."""
    keys = dict.fromkeys(_flow_key(flow) for one in trials for flow in one.flows)
    same = Counter((key[0], key[3]) for key in keys)
    short = {key: f"{key[0]}-{key[3]}" for key in keys}
    return {
        key: label if same[key[0], key[3]] == 1 else f"{label}-{key[1]}-{key[2]}"
        for key, label in short.items()
    }


def _components(
    old: OldTrial, roles: Mapping[str, str], labels: Mapping[FlowKey, str]
) -> dict[str, PlanValue | tuple[PlanValue, ...] | None]:
    """Return what is known of a trial; of its settings, its test id says only what they should have been."""
    duration_s = round(old.end_s - old.start_s, 3)
    interfaces = {host: tuple(dict.fromkeys(own.values())) for host, own in old.interfaces.items()}
    ends = {one for stream, _, _ in old.flows for one in (stream.source, stream.destination)}
    facing = {
        host: next((one for address, one in own.items() if address in ends), "")
        for host, own in old.interfaces.items()
    }
    flows = tuple(
        FlowPlan(
            label=labels[_flow_key(flow)],
            group=labels[_flow_key(flow)],
            generator=GENERATOR,
            from_host=sender,
            to_host=receiver,
            from_address=stream.source,
            to_address=stream.destination,
            port=min(stream.ports),
            start_s=round(stream.first_s - old.start_s, 3),
            duration_s=round(stream.last_s - stream.first_s, 3),
            size_bytes=None,
        )
        for flow in old.flows
        for stream, sender, receiver in [flow]
    )
    unset: dict[str, Any] = dict.fromkeys(("cc", "rwnd_bytes", "mtu_bytes", "txd"))
    hosts = {
        f"hosts.{host}": HostPlan(
            os=_system(old.files, host), role=role, interfaces=interfaces.get(host, ()), **unset
        )
        for host, role in roles.items()
    }
    captures = (
        CapturePlan(host=host, interface=facing.get(host, ""), snaplen_bytes=read_snaplen(file))
        for host, file in old.captures.items()
    )
    loggers = (
        LoggerPlan(logger=LOGS[kind][0], host=host, interface=facing.get(host, ""))
        for host, kind, _ in _tcp_logs(old.files)
    )
    return {
        "run": RunPlan(mtu_bytes=None, duration_s=duration_s, deadline_s=duration_s, stop=None),
        "path": None,
        **hosts,
        "flows": flows,
        "captures": tuple(captures),
        "loggers": tuple(loggers),
    }


def _tcp_logs(files: TrialFiles) -> Iterator[tuple[str, str, Path]]:
    for host, own in files.hosts.items():
        for name, file in own.items():
            kind = name.partition(".")[0]
            if host and kind in LOGS:
                yield host, kind, file


def _write_trial(old: OldTrial, planned: dict[str, Any], testbed: str, folder: Path) -> None:
    """Copy the files of a trial, with traces of TCP converted, and write its manifest."""
    place = folder / "in-progress" / old.files.id
    for name in ("traces", "logs"):
        (place / name).mkdir(parents=True)
    captures, recorded = set(old.captures.values()), list[dict[str, Any]]()
    as_they_are = set[Path]()
    for host, kind, file in _tcp_logs(old.files):
        logger, convert = LOGS[kind]
        trace = place / "traces" / (f"{host}-{logger}.csv.gz" if convert else file.name)
        if convert:
            trace.write_bytes(gzip.compress(convert(read_text(file)).encode(), mtime=0))
        else:
            shutil.copyfile(file, trace)
            as_they_are.add(file)
        recorded.append(_file(place, trace, "logger", host, logger))
    for host, own in old.files.hosts.items():
        for name, file in own.items():
            if file in as_they_are:
                continue
            copy = place / ("traces" if ".dmp" in name else "logs") / file.name
            shutil.copyfile(file, copy)
            kind = "capture" if file in captures else "generator" if re.match("[0-9]+_", name) else ""
            if kind:
                recorded.append(_file(place, copy, kind, host))
    check = Check("settings", "all hosts", "evidence of each", "none recorded", False, "suspect")
    result = {
        "attempt": 1,
        "testbed": testbed,
        "outcome": "completed",
        "verdict": "suspect",
        "reasons": [REASON],
        "checks": [check.as_json()],
        "t_start_s": round(old.start_s, 6),
        "t_end_s": round(old.end_s, 6),
        "overhead_s": 0.0,
        "clocks": {},
        "starts": [],
        "ends": [],
        "phases": [],
        "files": recorded,
    }
    write_json(place / "manifest.json", {**planned, **result})
    commit_trial(place, folder / "trials")


def _file(place: Path, file: Path, kind: str, host: str, logger: str = "") -> dict[str, Any]:
    own = {"path": file.relative_to(place).as_posix(), "kind": kind, "host": host}
    own |= {"logger": logger} if logger else {}
    return {**own, "bytes": file.stat().st_size, "sha256": sha256_of(file)}
