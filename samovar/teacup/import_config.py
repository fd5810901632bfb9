"""Write an experiment and a testbed from a TEACUP configuration; list what became of each variable."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from samovar.errors import ProjectError
from samovar.experiment import RecipeCatalogue, find_secrets
from samovar.teacup.configuration import DEFAULT_CC, VARIABLE, Configuration
from samovar.teacup.parameters import Names, NoCounterpartError, Spread, Target, spread
from samovar.teacup.router_queues import BottleneckQueues, find_path, path_targets
from samovar.teacup.static_python import read_module
from samovar.teacup.traffic_gens import algorithm, flows_of, milliseconds, number, seconds
from samovar.teacup.variables import NOTHING, counterpart_of

INTERFACES = {"linux": "eth", "freebsd": "em"}
PARAMETER = re.compile(r"net\.inet\.tcp\.cc\.([a-z0-9]+)\.([A-Za-z0-9_]+)")
SNAPLEN_BYTES = (96, 65535)


@dataclass(frozen=True)
class ImportedConfig:
    """The files written, a row for each variable (name, here, remark), notes, and trials of TEACUP."""

    files: tuple[Path, ...]
    rows: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    teacup_trials: int


def import_config(
    path: Path, root: Path, name: str, catalogue: RecipeCatalogue, schema: str
) -> ImportedConfig:
    """Write experiments/NAME.yaml and hosts/NAME.yaml into a project, whose editor schemas are in `schema`.

    Nothing of the configuration is executed, and no password is written. Raises DefinitionError if it cannot
    be read, ProjectError if one of the files exists.
    """
    files = (root / "experiments" / f"{name}.yaml", root / "hosts" / f"{name}.yaml")
    for file in files:
        if file.exists():
            raise ProjectError(f"{file}: exists already; import under another name with --name")
    module = read_module(path)
    config = Configuration(module, path)
    if not config.routers and not config.hosts:
        raise config.refuse("has neither TPCONF_router nor TPCONF_hosts; give the config.py of TEACUP")
    bottleneck = find_path(config)
    experiment, found = _experiment(config, bottleneck, name, catalogue)
    testbed = _testbed(config, bottleneck, name)
    rows = tuple(_rows(config))
    notes = (
        *(f"{variable}: {text}" for variable, text in config.notes),
        *found.notes,
        *map(str, module.unread),
    )
    heads = [f"From TEACUP's {path.name}; docs/how-to/come-from-teacup.md explains each variable.", ""]
    heads += [f"{variable}: {remark}" for variable, here, remark in rows if here == NOTHING]
    texts = (
        _text([*heads, "", *notes], experiment, f"{schema}/experiment.json"),
        _text(
            [
                heads[0],
                "The names of interfaces are invented: TEACUP finds them by address.",
                *_power(config),
            ],
            testbed,
            f"{schema}/testbed.json",
        ),
    )
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    trials = max(1, int(number(config.get("runs", (int, str), 1)))) if not config.parameters() else 1
    for parameter in config.parameters():
        trials *= len(parameter.levels)
    return ImportedConfig(files, rows, notes, trials)


def _rows(config: Configuration) -> Iterator[tuple[str, str, str]]:
    """Yield a row for every variable that the configuration sets."""
    names = {*config.module.places, *(re.split(r"[\\[.]", one.name)[0] for one in config.module.unread)}
    for name in sorted(names):
        known = counterpart_of(name)
        if known is not None:
            yield name, known.here, known.remark
        elif name.startswith(("TPCONF_", "env.")):
            yield name, NOTHING, "not a variable of TEACUP; what uses it is translated"


def _text(comments: Sequence[str], tree: Mapping[str, Any], schema: str) -> str:
    """Return a file: comments, then a line for each key, or for each of its entries."""
    lines = [f"# yaml-language-server: $schema=../{schema}"]
    lines += [f"# {' '.join(one.split())}".rstrip() for one in comments]
    for key, value in tree.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines += [f"{key}:", *(f"  - {_flow(one)}" for one in value)]
        elif isinstance(value, dict) and key in ("hosts", "factors", "settings", "path"):
            lines.append(f"{key}:")
            for inner, one in value.items():
                linked = isinstance(one, list) and isinstance(one[0], dict) and "label" in one[0]
                lines.append(f"  {_flow(inner)}:" + (f" {_flow(one)}" if not linked else ""))
                lines += [f"    - {_flow(level)}" for level in one if linked]
        else:
            lines.append(f"{key}: {_flow(value)}")
    text = "\n".join(lines) + "\n"
    # A line that looks like a secret would make the file unreadable.
    places = {text.count("\n", 0, start) for start, _ in find_secrets(text)}
    return "\n".join(line for at, line in enumerate(text.splitlines()) if at not in places) + "\n"


def _flow(value: object) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False, allow_unicode=True)
    return text.removesuffix("...\n").strip()


# The experiment


def _experiment(
    config: Configuration, bottleneck: BottleneckQueues | None, name: str, catalogue: RecipeCatalogue
) -> tuple[dict[str, Any], Spread]:
    flows = list(flows_of(config))
    if not flows:
        raise config.refuse("has no entry of TPCONF_traffic_gens that can be said here")
    targets = [target for _, several in flows for target in several]
    if bottleneck is not None:
        targets += path_targets(config, bottleneck, catalogue)
    ends = {end for flow, _ in flows for end in (flow["from"], flow["to"])}
    targets += _settings(config, {flow["from"] for flow, _ in flows})
    replicates, parameters = 1, []
    for parameter in config.parameters():
        if parameter.variables & {"V_runs", "V_run"}:
            replicates = len(parameter.levels)
        else:
            parameters.append(parameter)
    found = spread(targets, parameters, config.defaults)
    values = _nested(found.constant, bottleneck)
    traffic = [{**flow, **values.get("traffic", {}).get(flow["flow"], {})} for flow, _ in flows]
    tree: dict[str, Any] = {"experiment": name, "title": f"{name}, from TEACUP", "testbed": name}
    tree |= {"path": values.get("path", {})} if bottleneck else {}
    tree |= {"settings": values["settings"]} if "settings" in values else {}
    tree |= {"traffic": traffic, "factors": found.factors, "replicates": replicates}
    tree["duration"] = seconds(number(config.get("duration", (int, float, str), 30)) or 30)
    tree["order"] = {"kind": "sequential"}
    tree |= _recording(config, sorted(ends), bottleneck)
    tree["figures"] = ["throughput-cdf", "rtt-cdf", "trial-time-series"]
    return {key: value for key, value in tree.items() if value not in ({}, [])}, found


def _nested(constant: Mapping[str, Any], bottleneck: BottleneckQueues | None) -> dict[str, Any]:
    """Return the constant values as the mappings of a file: path, settings, and traffic by label."""
    found: dict[str, Any] = {}
    classes: dict[str, dict[str, Any]] = {}
    for key, value in constant.items():
        owner, _, own = key.rpartition(".")
        if owner.startswith("path.classes."):
            classes.setdefault(owner.removeprefix("path.classes."), {})[own] = value
        elif owner.startswith("traffic."):
            found.setdefault("traffic", {}).setdefault(owner.removeprefix("traffic."), {})[own] = value
        elif owner == "path":
            found.setdefault("path", {})[own] = value
        else:
            found.setdefault("settings", {})[key] = value
    if classes and bottleneck is not None:
        ends = bottleneck.ends
        several = [
            {"name": name, "from": ends[name][0], "to": ends[name][1], **own} for name, own in classes.items()
        ]
        found.setdefault("path", {})["classes"] = several
    return found


def _settings(config: Configuration, senders: set[str]) -> Iterator[Target]:
    """Yield the targets of congestion control and its parameters, ECN, and the user's commands."""
    hosts = {control: name for control, name in config.names.items() if name in senders}
    own = frozenset({"V_tcp_cc_algo"})

    def algorithms(names: Names) -> dict[str, str]:
        return {control: _algorithm(config, control, names) for control in hosts}

    def alike(values: Mapping[str, str]) -> Any:
        several = {hosts.get(control, config.names[control]): value for control, value in values.items()}
        return (
            next(iter(several.values()))
            if len(set(several.values())) == 1 and len(several) == len(hosts)
            else several
        )

    if "V_tcp_cc_algo" in config.defaults:
        yield Target("cc", own, lambda names: alike(algorithms(names)))
    for key, (variables, texts) in _cc_parameters(config, hosts).items():

        def parameter(names: Names, texts: Mapping[tuple[str, str], str] = texts) -> Any:
            chosen = algorithms(names)
            found = {
                host: _substituted(text, names)
                for (host, algo), text in texts.items()
                if chosen[host] == algo
            }
            return {hosts[host]: value for host, value in found.items()} or None

        yield Target(f"cc.{key}", own | variables, parameter)
    if "V_ecn" in config.defaults:
        yield Target(
            "tcp.ecn", frozenset({"V_ecn"}), lambda names: "on" if str(names["V_ecn"]) == "1" else "off"
        )
    commands = {}
    for host, several in config.get("host_init_custom_cmds", dict, {}).items():
        text = " && ".join(str(one) for one in several) if isinstance(several, list | tuple) else ""
        if host in config.names and text and not list(find_secrets(text)):
            commands[config.names[host]] = text
        elif text:
            config.note(
                "TPCONF_host_init_custom_cmds",
                f"commands of {str(host)[:40]}: of no host, or with a password",
            )
    if commands:
        variables = frozenset(
            name.replace("-", "__") for text in commands.values() for name in VARIABLE.findall(text)
        )
        yield Target(
            "command.run",
            variables,
            lambda names: {h: _substituted(text, names) for h, text in commands.items()},
        )
        yield Target("command.undo", frozenset(), lambda _: dict.fromkeys(commands, "none"))
        config.note(
            "TPCONF_host_init_custom_cmds",
            "nothing undoes these commands: replace `none` by commands that do",
        )


def _algorithm(config: Configuration, host: str, names: Names) -> str:
    wanted = str(names["V_tcp_cc_algo"])
    listed = re.fullmatch(r"host([0-9]{1,4})", wanted)
    if listed:
        several = [str(one) for one in config.get("host_TCP_algos", dict, {}).get(host, ())] or ["default"]
        wanted = several[int(listed[1])] if int(listed[1]) < len(several) else several[0]
    return DEFAULT_CC[config.system(host)] if wanted == "default" else algorithm(wanted)


def _cc_parameters(
    config: Configuration, hosts: Mapping[str, str]
) -> dict[str, tuple[frozenset[str], dict[tuple[str, str], str]]]:
    """Return parameters of congestion controls: the variables in them, and the text by host and algorithm."""
    found: dict[str, tuple[frozenset[str], dict[tuple[str, str], str]]] = {}
    for host, by_algorithm in config.get("host_TCP_algo_params", dict, {}).items():
        for algo, several in by_algorithm.items() if isinstance(by_algorithm, dict) else ():
            for one in several if isinstance(several, list | tuple) else ():
                name, _, value = (part.strip() for part in str(one).partition("="))
                known = PARAMETER.fullmatch(name)
                if known is None or host not in hosts or not value:
                    config.note(
                        "TPCONF_host_TCP_algo_params",
                        f"{host}: {name[:60]}: set it with tcp.<parameter> or command.run",
                    )
                    continue
                variables, texts = found.get(known[2], (frozenset(), {}))
                used = frozenset(one.replace("-", "__") for one in VARIABLE.findall(value))
                found[known[2]] = variables | used, {**texts, (str(host), algorithm(algo)): value}
    return found


def _substituted(text: str, names: Names) -> str:
    """Return a text with the values of its variables."""

    def value(match: re.Match[str]) -> str:
        name = match[0].replace("-", "__")
        if name not in names:
            raise NoCounterpartError(f"{match[0][:40]} has no value")
        return str(names[name])

    return VARIABLE.sub(value, text)


def _recording(config: Configuration, ends: list[str], bottleneck: BottleneckQueues | None) -> dict[str, Any]:
    """Return captures and loggers."""
    found: dict[str, Any] = {}
    if config.text("tcpdump_logger", "1") == "1":
        wanted = int(number(config.get("pcap_snaplen", (int, str), 80)))
        least, most = SNAPLEN_BYTES
        snaplen = max(least, min(wanted or most, most))
        found["captures"] = [{"at": ends, "snaplen": snaplen}]
    loggers: list[dict[str, Any]] = []
    if config.text("tcpstats_logger", "1") == "1":
        interval = milliseconds(config.get("web10g_poll_interval", (int, float, str), 10))
        probes = {"prefer": "tcp-probe"} if config.text("linux_tcp_logger") == "ttprobe" else {}
        systems = {config.system(host) for host, name in config.names.items() if name in ends}
        timed = {"interval": interval} if "linux" in systems and not probes else {}
        loggers.append({"logger": "tcp-state", "at": ends, **timed, **probes})
    if bottleneck is not None:
        loggers.append({"logger": "queue", "at": config.names[bottleneck.router], "interval": "100ms"})
    if config.text("bc_ping_enable", "0") == "1":
        every = seconds(1 / (number(config.get("bc_ping_rate", (int, float, str), 1)) or 1))
        address = config.text("bc_ping_address", "224.0.1.199")
        loggers.append(
            {"logger": "beacons", "at": list(config.names.values()), "interval": every, "address": address}
        )
    return {**found, "loggers": loggers}


# The testbed


def _testbed(config: Configuration, bottleneck: BottleneckQueues | None, name: str) -> dict[str, Any]:
    user = str(config.module.values.get("env.user") or "root")
    tree: dict[str, Any] = {
        "testbed": name,
        "description": "From a TEACUP configuration.",
        "ssh": {"user": user},
    }
    speed = _speed(config, config.module.values.get("TPCONF_linkspeed", "auto"))
    tree |= {"settings": speed} if speed else {}
    tree["hosts"] = {name: _host(config, host, bottleneck) for host, name in config.names.items()}
    if bottleneck is not None:
        interfaces = tree["hosts"][config.names[bottleneck.router]]["interfaces"]
        sides = [
            next(one for one, own in interfaces.items() if config.network(own["address"]) == side)
            for side in bottleneck.sides
        ]
        tree["bottleneck"] = {"router": config.names[bottleneck.router], "from": sides[0], "to": sides[1]}
    return tree


def _host(config: Configuration, host: str, bottleneck: BottleneckQueues | None) -> dict[str, Any]:
    system, own = config.system(host), config.addresses.get(host, [])
    side = bottleneck.sides[0] if bottleneck else config.network(f"{next(iter(own), '0.0.0.0')}/24")
    sends = any(config.network(one).subnet_of(side) for one in own) and (
        bottleneck or host == config.hosts[0]
    )
    role = "router" if host in config.routers else "sender" if sends else "receiver"
    address, _, port = host.partition(":")
    tree: dict[str, Any] = {"os": system, "role": role, "address": address}
    tree |= {"ssh": {"port": int(port)}} if port.isdecimal() else {}
    tree["interfaces"] = {
        f"{INTERFACES[system]}{number}": {
            "address": f"{one}/24",
            "link": "net-" + "-".join(one.split(".")[:3]),
        }
        for number, one in enumerate(own, 1)
    }
    speed = _speed(config, config.get("host_linkspeed", dict, {}).get(host, "auto"))
    tree |= {"settings": speed} if speed else {}
    if "TPCONF_boot_timeout" in config.module.values:
        tree["boot_timeout"] = seconds(config.get("boot_timeout", (int, float, str), 100))
    return tree


def _speed(config: Configuration, value: Any) -> dict[str, str]:
    return {"speed.rate": f"{value}Mbit"} if str(value).isdecimal() else {}


def _power(config: Configuration) -> Iterator[str]:
    """Yield comments with the power controller's outlets; its login stays where it is."""
    for host, one in config.get("host_power_ctrlport", dict, {}).items():
        if isinstance(one, list | tuple) and len(one) == 2 and host in config.names:
            kind = config.text("power_ctrl_type", "9258HP")[:20]
            yield (
                f"{config.names[host]}: outlet {str(one[1])[:20]} of the {kind} at {str(one[0])[:40]}; "
                "to use it, add to the host power {on, off, outlet}; its commands read the login from a file"
            )
