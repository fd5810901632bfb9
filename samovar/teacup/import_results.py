"""Make a campaign from a TEACUP results folder: flows from captures, levels from test ids, traces from logs.

Nothing recorded which settings were in force in these trials, so every trial is suspect.
"""

from __future__ import annotations

import gzip
import re
import shutil
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any

import yaml

from samovar import __version__
from samovar.atomic_files import write_json, write_whole
from samovar.campaign import PLAN, point_latest
from samovar.campaign.collection import commit_trial, digests, sha256_of, sums_digest
from samovar.campaign.journal import JOURNAL, Journal
from samovar.campaign.verdict import Check
from samovar.errors import CampaignError
from samovar.experiment import keys
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
from samovar.teacup.convert_values import link_of
from samovar.teacup.result_files import (
    Stream,
    TrialFiles,
    addresses_of,
    find_trials,
    read_capture,
    read_text,
    ttprobe_as_tcp_probe,
    web10g_as_tcp_info,
)

REASON = "imported from TEACUP: no file records that the settings in its test id were in force"
LOGS = {
    "siftr.log.gz": ("siftr", None),
    "web10g.log.gz": ("tcp-info", web10g_as_tcp_info),
    "ttprobe.log.gz": ("tcp-probe", ttprobe_as_tcp_probe),
}
"""For each TEACUP log of TCP's state: the samovar logger whose format it is converted to, and the converter.

SIFTR's log is copied unchanged.
"""
CAPTURE, UNAME, IFCONFIG = "dmp.gz", "uname.log.gz", "ifconfig.log.gz"
GENERATOR_LOG = re.compile("[0-9]+_.*")
FIGURES = ("throughput-cdf", "rtt-cdf", "sender-cdf", "trial-time-series")
TABLE = {"table": "treatments", "metrics": ["throughput_bps", "goodput_bps", "rtt_median_ms", "loss_share"]}
OWN_FILES = ("plan.json", "provenance.json", "*.yaml")


@dataclass(frozen=True)
class OldTrial:
    """A trial of TEACUP.

    `id` is its test id, in which `-` replaces characters that ids of trials cannot have. `levels` maps the
    short names of parameters to values. `interfaces` maps each host to a mapping from its addresses to its
    interfaces. `snaplens` maps each host with a readable capture to the snaplen of this capture in bytes.
    """

    id: str
    files: TrialFiles
    levels: Mapping[str, str]
    replicate: int
    interfaces: Mapping[str, Mapping[str, str]]
    snaplens: Mapping[str, int]
    flows: Sequence[Stream]

    @property
    def start_s(self) -> float:
        """The time at which the first flow began."""
        return min(flow.first_s for flow in self.flows)

    @property
    def end_s(self) -> float:
        """The time at which the last flow ended."""
        return max(flow.last_s for flow in self.flows)

    def uname(self, host: str) -> str:
        """Return the host's system, release and version; empty without a log of uname."""
        files = self.files.hosts.get(host, {})
        return " ".join(read_text(files[UNAME]).split())[:200] if UNAME in files else ""

    def system(self, host: str) -> str:
        """Return the host's operating system as samovar names it."""
        return "freebsd" if self.uname(host).startswith("FreeBSD") else "linux"

    def interface_of(self, host: str) -> str:
        """Return the interface at which a host's capture was made: the one with a flow's address, or ""."""
        ends = {end for flow in self.flows for end in (flow.source, flow.destination)}
        own = self.interfaces.get(host, {})
        return next((interface for address, interface in own.items() if address in ends), "")


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
        files = f"TESTID_HOST_{UNAME} and captures"
        raise CampaignError(f"{source}: no TEACUP trial found; a trial has files {files}{why}")
    name = re.sub(r"[^A-Za-z0-9-]+", "-", source.resolve().name).strip("-") or "teacup"
    folder = results / name / f"teacup-{datetime.fromtimestamp(trials[0].start_s, UTC):%Y%m%d-%H%M%S}"
    if folder.exists():
        raise CampaignError(f"{folder}: exists already; remove it to import these results again")
    _write_campaign(trials, name, folder)
    secrets = sorted((*source.glob("*_config.tar.gz"), *source.glob("*_tpconf_vars.log.gz")))
    notes += [f"{file.name}: not copied, as it holds passwords" for file in secrets]
    return ImportedResults(folder, len(trials), tuple(notes))


# What a results folder holds


def _read_trials(source: Path, notes: list[str]) -> Iterator[OldTrial]:
    lists = sorted(source.glob("*_varying_params.log.gz"))  # named after the prefix of all test ids
    prefix = lists[0].name.removesuffix("_varying_params.log.gz") if lists else source.resolve().name
    seen = set[tuple[tuple[tuple[str, str], ...], int]]()
    ids = set[str]()
    for files in find_trials(source):
        # `--only` separates levels by blanks and commas.
        words = re.sub(r"[\s,]", "-", files.id.removeprefix(prefix)).strip("_").split("_")
        named = zip(words[::2], words[1::2], strict=False)  # short names and values alternate
        levels = {f"{one}-levels" if one in keys.TABLE_COLUMNS else one: level for one, level in named}
        run, key = levels.pop("run", ""), tuple(levels.items())
        first = int(run) + 1 if re.fullmatch("[0-9]{1,4}", run) else 1
        replicate = next(one for one in count(first) if (key, one) not in seen)
        interfaces = _read_addresses(files, notes)
        snaplens, flows = _read_captures(files, interfaces, notes)
        if flows:
            seen.add((key, replicate))
            plain = re.sub(r"[^A-Za-z0-9._-]", "-", files.id)
            numbered = (f"{plain}-{number}" for number in count(2))
            id_ = next(one for one in chain([plain], numbered) if one not in ids)
            ids.add(id_)
            yield OldTrial(id_, files, levels, replicate, interfaces, snaplens, flows)
        else:
            notes.append(f"{files.id}: no capture with a flow between its hosts; left out")


def _read_addresses(files: TrialFiles, notes: list[str]) -> dict[str, dict[str, str]]:
    """Return the interface of each address, by host, from ifconfig; leave out damaged logs."""
    found = {}
    for host, own in files.hosts.items():
        for name in [one for one in (UNAME, IFCONFIG, *LOGS) if one in own]:
            try:
                text = read_text(own[name])
            except CampaignError as error:
                notes.append(f"{error}; left out")
                del own[name]
                continue
            if name == IFCONFIG and host:
                found[host] = addresses_of(text)
        if host and host not in found:
            notes.append(f"{files.id}: {host} has no ifconfig log, so its addresses are unknown")
    return found


def _read_captures(
    files: TrialFiles, interfaces: Mapping[str, Mapping[str, str]], notes: list[str]
) -> tuple[dict[str, int], list[Stream]]:
    """Return the snaplen of each host's capture, and the flows: streams that carry data between hosts."""
    snaplens: dict[str, int] = {}
    streams: list[Stream] = []
    host_of = {address: host for host, own in interfaces.items() for address in own}
    for host, own in files.hosts.items():
        if CAPTURE in own:
            try:
                snaplens[host], found = read_capture(own[CAPTURE])
            except CampaignError as error:
                notes.append(f"{error}; left out")
                continue
            streams += found
    between = [one for one in streams if one.source in host_of and one.destination in host_of]
    one_way = _largest(between, lambda one: (one.protocol, frozenset(one.ends)))
    several = _largest(one_way, lambda one: (one.protocol, one.source, one.destination, min(one.ports)))
    for one in several:
        one.sender, one.receiver = host_of[one.source], host_of[one.destination]
    return snaplens, sorted(several, key=lambda one: one.first_s)


def _largest(streams: Iterable[Stream], key: Callable[[Stream], Hashable]) -> list[Stream]:
    """Return, for each key, the stream with the most data; streams without data are left out."""
    found = {key(one): one for one in sorted(streams, key=lambda one: one.payload_bytes)}
    return [one for one in found.values() if one.payload_bytes > 0]


# The campaign


def _write_campaign(trials: Sequence[OldTrial], name: str, folder: Path) -> None:
    roles, labels = _roles(trials), _flow_labels(trials)
    plan = _plan(trials, name, roles, labels)
    traffic = [
        {"flow": label, "generator": "teacup", "from": sender, "to": receiver, "port": port}
        for (_, sender, receiver, port), label in labels.items()
    ]
    definition = {
        "experiment": name, "title": plan.title, "source": "TEACUP", "testbed": name,
        "description": plan.description, "traffic": traffic, "figures": list(FIGURES), "tables": [TABLE],
    }  # fmt: skip
    hosts = {host: {"kernel": trials[0].uname(host)} for host in roles}
    provenance = {"controller": {"samovar": __version__}, "testbed": name, "hosts": hosts}
    (folder / "trials").mkdir(parents=True)
    for file, tree in (("experiment", definition), ("testbed", _testbed(trials, name, roles))):
        text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
        write_whole(folder / f"{file}.yaml", text.encode())
    write_json(folder / "provenance.json", provenance)
    write_whole(folder / PLAN, plan.to_json())
    with Journal(folder / JOURNAL) as journal:
        journal.append("campaign-started", trials[0].start_s)
        journal.append("files-recorded", trials[0].start_s, files=digests(folder, *OWN_FILES))
        for old, planned in zip(trials, plan.trials, strict=True):
            journal.append("trial-started", old.start_s, id=old.id, attempt=1, testbed=name)
            _write_trial(old, planned.as_json(), name, folder)
            sums = sums_digest(folder / "trials" / old.id)
            end = {"outcome": "completed", "verdict": "suspect", "reasons": [REASON]}
            journal.append("trial-finished", old.end_s, id=old.id, **end, overhead_s=0.0, **sums)
        journal.append("campaign-finished", trials[-1].end_s, completed=len(trials), failed=0)
    point_latest(folder)


def _roles(trials: Sequence[OldTrial]) -> dict[str, str]:
    """Return the role of every host: a sender sends more than it receives, a router has no flow."""
    sent_bytes = Counter[str]()
    for flow in (flow for trial in trials for flow in trial.flows):
        sent_bytes[flow.sender] += flow.payload_bytes
        sent_bytes[flow.receiver] -= flow.payload_bytes
    hosts = dict.fromkeys(host for trial in trials for host in trial.files.hosts if host)
    ends = {host: "sender" if number > 0 else "receiver" for host, number in sent_bytes.items()}
    return {host: ends.get(host, "router") for host in hosts}


def _flow_labels(trials: Sequence[OldTrial]) -> dict[tuple[str, str, str, int], str]:
    """Return the label of each flow: protocol and port, and its hosts if several flows share both."""
    keys = dict.fromkeys(flow.flow for trial in trials for flow in trial.flows)
    flows = Counter((protocol, port) for protocol, _, _, port in keys)
    labels = {}
    for protocol, sender, receiver, port in keys:
        hosts = f"-{sender}-{receiver}" if flows[protocol, port] > 1 else ""
        labels[protocol, sender, receiver, port] = f"{protocol}-{port}{hosts}"
    return labels


def _testbed(trials: Sequence[OldTrial], name: str, roles: Mapping[str, str]) -> dict[str, Any]:
    """Return a testbed file with the hosts, and their interfaces in the networks of flows."""
    addresses = {host: own for trial in reversed(trials) for host, own in trial.interfaces.items()}
    streams = [stream for trial in trials for stream in trial.flows]
    links = {link_of(end) for stream in streams for end in (stream.source, stream.destination)}
    hosts = {}
    for host, role in roles.items():
        interfaces = {
            interface: {"address": f"{address}/24", "link": link_of(address)}
            for address, interface in addresses.get(host, {}).items()
            if link_of(address) in links
        }
        own = {"os": trials[0].system(host), "role": role, "address": host}
        hosts[host] = {**own, "interfaces": interfaces}
    return {"testbed": name, "description": "Hosts of a TEACUP results folder.", "hosts": hosts}


def _plan(trials: Sequence[OldTrial], name: str, roles: Mapping[str, str], labels: Mapping[Any, str]) -> Plan:
    """Return a plan that has TEACUP's trials, with their test ids as ids."""
    names = list(dict.fromkeys(key for one in trials for key in one.levels))
    rows = [tuple(one.levels.get(key, "") for key in names) for one in trials]
    treatments = list(dict.fromkeys(rows))
    factors = {key: tuple(dict.fromkeys(row[at] for row in treatments)) for at, key in enumerate(names)}
    slots = [Slot(treatments.index(row), one.replicate, 1) for row, one in zip(rows, trials, strict=True)]
    replicates = max(one.replicate for one in trials)
    components, columns = Components(), dict[str, list[list[Component]]]()
    for replicate in range(1, replicates + 1):
        for number in range(len(treatments)):
            own = {slot.replicate: one for slot, one in zip(slots, trials, strict=True) if slot[0] == number}
            # A missing replicate gets the values of another replicate. No trial uses these values.
            old = own.get(replicate) or next(iter(own.values()))
            for key, value in _components(old, roles, labels).items():
                column = columns.setdefault(key, [[] for _ in range(replicates)])[replicate - 1]
                column.append(components.add(key, value))
    levels = [
        tuple(factors[key].index(one) for key, one in zip(names, row, strict=True)) for row in treatments
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
        trials=Trials([Treatments("main", factors, levels, columns)], [one.id for one in trials], slots),
    )


def _components(
    old: OldTrial, roles: Mapping[str, str], labels: Mapping[Any, str]
) -> dict[str, PlanValue | tuple[PlanValue, ...] | None]:
    """Return the components of a trial that its files show: flows, captures, loggers and hosts.

    The settings of hosts stay unknown, because the test id says only what they should have been.
    """
    duration_s = round(old.end_s - old.start_s, 3)
    unknown: dict[str, Any] = dict.fromkeys(("cc", "rwnd_bytes", "mtu_bytes", "txd"))
    flows = (
        FlowPlan(
            label=labels[flow.flow],
            group=labels[flow.flow],
            generator="teacup",  # captures do not tell which program sent the packets
            from_host=flow.sender,
            to_host=flow.receiver,
            from_address=flow.source,
            to_address=flow.destination,
            port=min(flow.ports),
            start_s=round(flow.first_s - old.start_s, 3),
            duration_s=round(flow.last_s - flow.first_s, 3),
            size_bytes=None,
        )
        for flow in old.flows
    )
    captures = (
        CapturePlan(host=host, interface=old.interface_of(host), snaplen_bytes=snaplen)
        for host, snaplen in old.snaplens.items()
    )
    loggers = (
        LoggerPlan(logger=logger, host=host, interface=old.interface_of(host))
        for host, files in old.files.hosts.items()
        for name, (logger, _) in LOGS.items()
        if name in files
    )
    hosts = {
        f"hosts.{host}": HostPlan(
            os=old.system(host),
            role=role,
            interfaces=tuple(dict.fromkeys(old.interfaces.get(host, {}).values())),
            **unknown,
        )
        for host, role in roles.items()
    }
    run = RunPlan(mtu_bytes=None, duration_s=duration_s, deadline_s=duration_s, stop=None)
    recorded = {"captures": tuple(captures), "loggers": tuple(loggers)}
    return {"run": run, "path": None, **hosts, "flows": tuple(flows), **recorded}


def _write_trial(old: OldTrial, planned: dict[str, Any], testbed: str, folder: Path) -> None:
    """Copy the files of a trial, convert its logs of TCP's state, and write its manifest."""
    place = folder / "in-progress" / old.id
    traces, logs = place / "traces", place / "logs"
    traces.mkdir(parents=True)
    logs.mkdir()
    recorded: list[dict[str, Any]] = []

    def record(file: Path, kind: str, host: str, **more: str) -> None:
        own = {"path": file.relative_to(place).as_posix(), "kind": kind, "host": host, **more}
        recorded.append({**own, "bytes": file.stat().st_size, "sha256": sha256_of(file)})

    for host, files in old.files.hosts.items():
        for name, file in files.items():
            logger, convert = LOGS.get(name, ("", None))
            is_trace = ".dmp" in name or (logger and not convert)
            copy = Path(shutil.copyfile(file, (traces if is_trace else logs) / file.name))
            if convert:
                copy = traces / f"{host}-{logger}.csv.gz"
                copy.write_bytes(gzip.compress(convert(read_text(file)).encode(), mtime=0))
            if logger:
                record(copy, "logger", host, logger=logger)
            elif name == CAPTURE and host in old.snaplens:
                record(copy, "capture", host)
            elif GENERATOR_LOG.fullmatch(name):
                record(copy, "generator", host)
    check = Check("settings", "all hosts", "evidence of each", "none recorded", False, "suspect")
    result = {
        "attempt": 1, "testbed": testbed, "outcome": "completed", "verdict": "suspect", "reasons": [REASON],
        "checks": [check.as_json()], "t_start_s": round(old.start_s, 6), "t_end_s": round(old.end_s, 6),
        "overhead_s": 0.0, "clocks": {}, "starts": [], "ends": [], "phases": [], "files": recorded,
    }  # fmt: skip
    write_json(place / "manifest.json", {**planned, **result})
    commit_trial(place, folder / "trials")
