"""Write an experiment and a testbed from a TEACUP configuration; list what became of each variable."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import yaml

from samovar.errors import DefinitionError, ProjectError
from samovar.experiment import RecipeCatalogue
from samovar.secrets import find_secrets
from samovar.teacup.configuration import VARIABLE, Configuration, variables_of
from samovar.teacup.convert_values import algorithm, link_of, milliseconds, seconds
from samovar.teacup.parameters import Names, NoCounterpartError, Spread, Target, spread
from samovar.teacup.router_queues import BottleneckQueues, find_path, path_targets
from samovar.teacup.static_python import evaluate, parse, read_module
from samovar.teacup.traffic_gens import flows_of
from samovar.teacup.variables import NOTHING, counterpart_of

INTERFACES = {"linux": "eth", "freebsd": "em"}
DEFAULT_CC = {"linux": "cubic", "freebsd": "newreno"}
CC_PARAMETER = re.compile(r"net\.inet\.tcp\.cc\.[a-z0-9]+\.([A-Za-z0-9_]+)")
SNAPLEN_BYTES = (96, 65535)
FIGURES = ["throughput-cdf", "rtt-cdf", "trial-time-series"]


@dataclass(frozen=True)
class ImportedConfig:
    """The result of an import.

    `files` are the files written. `rows` has the name of each variable, its counterpart in samovar and a
    remark. `teacup_trials` is the number of trials that TEACUP would run.
    """

    files: tuple[Path, ...]
    rows: tuple[tuple[str, str, str], ...]
    notes: tuple[str, ...]
    teacup_trials: int


def import_config(
    path: Path, root: Path, name: str, catalogue: RecipeCatalogue, schema: str
) -> ImportedConfig:
    """Write experiments/NAME.yaml and hosts/NAME.yaml into the project in the folder `root`.

    `schema` is the project's folder of editor schemas. Nothing of the configuration is executed, and no
    password is written. Raises DefinitionError if the configuration cannot be read, and ProjectError if one
    of the files exists.
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
    own_notes = (f"{variable}: {text}" for variable, text in config.notes)
    notes = (*own_notes, *found.notes, *map(str, module.unread))
    head = f"From TEACUP's {path.name}; docs/how-to/come-from-teacup.md explains each variable."
    lost = [f"{variable}: {remark}" for variable, here, remark in rows if here == NOTHING]
    invented = "The names of interfaces are invented: TEACUP finds them by address."
    texts = (
        _text([head, "", *lost, "", *notes], experiment, f"{schema}/experiment.json"),
        _text([head, invented, *_power(config)], testbed, f"{schema}/testbed.json"),
    )
    for file, text in zip(files, texts, strict=True):
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    return ImportedConfig(files, rows, notes, prod(len(one.levels) for one in config.parameters()))


def _rows(config: Configuration) -> Iterator[tuple[str, str, str]]:
    """Yield a row for every variable that the configuration sets."""
    names = {*config.module.values, *(re.split(r"[\[.]", one.name)[0] for one in config.module.unread)}
    for name in sorted(names):
        known = counterpart_of(name)
        if known is not None:
            yield name, *known
        elif name.startswith(("TPCONF_", "env.")):
            yield name, NOTHING, "not a variable of TEACUP; values that use it are translated"


def _text(comments: Sequence[str], tree: Mapping[str, Any], schema: str) -> str:
    """Return a YAML file as text: comments, then the tree, with innermost mappings and lists on one line."""
    lines = [f"yaml-language-server: $schema=../{schema}", *(" ".join(one.split()) for one in comments)]
    text = "".join(f"# {line}".rstrip() + "\n" for line in lines)
    text += yaml.dump(tree, Dumper=_Dumper, default_flow_style=None, sort_keys=False, width=10**9)
    # Leave out lines that look like secrets, because samovar refuses to read a file with such a line.
    secrets = {text.count("\n", 0, start) for start, _ in find_secrets(text)}
    return "".join(line for at, line in enumerate(text.splitlines(keepends=True)) if at not in secrets)


class _Dumper(yaml.SafeDumper):
    """Writes a value in full wherever it occurs, without anchors and aliases."""

    def ignore_aliases(self, data: object) -> bool:
        return True


# The experiment


def _experiment(
    config: Configuration, bottleneck: BottleneckQueues | None, name: str, catalogue: RecipeCatalogue
) -> tuple[dict[str, Any], Spread]:
    flows = list(flows_of(config))
    if not flows:
        why = next((f"; {text}" for name, text in config.notes if name == "TPCONF_traffic_gens"), "")
        raise config.refuse(f"no entry of TPCONF_traffic_gens has a counterpart in samovar{why}")
    targets = [target for _, several in flows for target in several]
    if bottleneck is not None:
        targets += path_targets(config, bottleneck, catalogue)
    senders, receivers = ({flow[end] for flow, _ in flows} for end in ("from", "to"))
    targets += [*_cc_targets(config, senders), *_settings(config)]
    runs = [one for one in config.parameters() if one.variables & {"V_runs", "V_run"}]
    found = spread(targets, [one for one in config.parameters() if one not in runs], config.defaults)
    values = _nested(found.constant, bottleneck)
    tree: dict[str, Any] = {
        "experiment": name,
        "title": f"{name}, from TEACUP",
        "testbed": name,
        "path": values.get("path"),
        "settings": values.get("settings"),
        "traffic": [{**flow, **values.get("traffic", {}).get(flow["flow"], {})} for flow, _ in flows],
        "factors": found.factors,
        "replicates": prod(len(one.levels) for one in runs),
        "duration": seconds(config.number("duration", 30) or 30),
        "order": {"kind": "sequential"},
        "captures": list(_captures(config, sorted(senders | receivers))),
        "loggers": list(_loggers(config, sorted(senders | receivers), bottleneck)),
        "figures": FIGURES,
    }
    return {key: value for key, value in tree.items() if value or key == "replicates"}, found


def _nested(constant: Mapping[str, Any], bottleneck: BottleneckQueues | None) -> dict[str, Any]:
    """Return the constant values nested as in an experiment file: path, settings, and traffic by label."""
    found: dict[str, Any] = {}
    for key, value in constant.items():
        owner, _, own = key.rpartition(".")
        if owner.startswith("path.classes.") and bottleneck is not None:
            name = owner.removeprefix("path.classes.")
            sender, receiver = bottleneck.ends[name]
            class_ = {"name": name, "from": sender, "to": receiver}
            found.setdefault("classes", {}).setdefault(name, class_)[own] = value
        elif owner.startswith("traffic."):
            found.setdefault("traffic", {}).setdefault(owner.removeprefix("traffic."), {})[own] = value
        elif owner == "path":
            found.setdefault("path", {})[own] = value
        else:
            found.setdefault("settings", {})[key] = value
    if "classes" in found:
        found.setdefault("path", {})["classes"] = list(found.pop("classes").values())
    return found


def _cc_targets(config: Configuration, senders: set[str]) -> Iterator[Target]:
    """Yield the targets of the senders' congestion controls and of their parameters."""
    hosts = {control: name for control, name in config.names.items() if name in senders}
    own = frozenset({"V_tcp_cc_algo"})

    def algorithms(names: Names) -> Any:
        chosen = {name: _algorithm(config, control, names) for control, name in hosts.items()}
        return next(iter(chosen.values())) if len(set(chosen.values())) == 1 else chosen

    def parameter(values: Mapping[tuple[str, str], ast.expr], names: Names) -> Any:
        return {
            hosts[host]: str(evaluate(value, names))
            for (host, algo), value in values.items()
            if _algorithm(config, host, names) == algo
        } or None

    yield Target("cc", own, algorithms)
    for key, values in _cc_parameters(config, hosts).items():
        variables = own.union(*(variables_of(value) for value in values.values()))
        yield Target(f"cc.{key}", variables, partial(parameter, values))


def _algorithm(config: Configuration, host: str, names: Names) -> str:
    """Return the congestion control of a host, which TEACUP sets even if no variable chooses it.

    The value host<N> means entry N of the host's list in TPCONF_host_TCP_algos.
    """
    wanted = str(names.get("V_tcp_cc_algo", "default"))
    if listed := re.fullmatch(r"host([0-9]{1,4})", wanted):
        own = dict(config.items("host_TCP_algos")).get(host)
        several = own if isinstance(own, list | tuple) and own else ["default"]
        wanted = str(several[int(listed[1])] if int(listed[1]) < len(several) else several[0])
    return DEFAULT_CC[config.system(host)] if wanted == "default" else algorithm(wanted)


def _cc_parameters(
    config: Configuration, hosts: Mapping[str, str]
) -> dict[str, dict[tuple[str, str], ast.expr]]:
    """Return parameters of congestion controls: the expression of each value, by host and algorithm."""
    variable = "TPCONF_host_TCP_algo_params"
    found: dict[str, dict[tuple[str, str], ast.expr]] = {}
    for host, by_algorithm in config.items("host_TCP_algo_params"):
        for algo, several in by_algorithm.items() if isinstance(by_algorithm, dict) else ():
            for one in several if isinstance(several, list | tuple) else ():
                name, _, value = (part.strip() for part in str(one).partition("="))
                known, where = CC_PARAMETER.fullmatch(name), f"{host}: {name[:60]}"
                if not (known and value):
                    config.note(variable, f"{where}: set it with tcp.<parameter> or command.run")
                    continue
                if host not in hosts:
                    config.note(variable, f"{where}: no flow sends from this host; it is left out")
                    continue
                try:
                    at = host, algorithm(algo)
                    found.setdefault(known[1], {})[at] = parse(value, where, "eval").body
                except (NoCounterpartError, DefinitionError) as error:
                    config.note(variable, f"{error}; it is left out")
    return found


def _settings(config: Configuration) -> Iterator[Target]:
    """Yield the targets `tcp.ecn`, `command.run` and `command.undo`, if the configuration sets them."""
    if "V_ecn" in config.defaults:
        own = frozenset({"V_ecn"})
        yield Target("tcp.ecn", own, lambda names: "on" if str(names["V_ecn"]) == "1" else "off")
    variable, commands = "TPCONF_host_init_custom_cmds", dict[str, str]()
    for host, several in config.items("host_init_custom_cmds"):
        text = " && ".join(map(str, several)) if isinstance(several, list | tuple) else ""
        if host in config.names and text and not list(find_secrets(text)):
            commands[config.names[host]] = text
        elif text:
            config.note(variable, f"commands of {host[:40]}: the host is unknown, or they contain a password")
    if commands:
        yield Target(
            "command.run",
            frozenset(VARIABLE.findall(" ".join(commands.values()))),
            lambda names: {host: _substituted(text, names) for host, text in commands.items()},
        )
        yield Target("command.undo", frozenset(), lambda _: dict.fromkeys(commands, "none"))
        config.note(variable, "nothing undoes these commands: replace `none` by commands that do")


def _substituted(text: str, names: Names) -> str:
    """Return a text in which variables are replaced by their values; raises NoCounterpartError."""
    for name in VARIABLE.findall(text):
        if name not in names:
            raise NoCounterpartError(f"{name[:40]} has no value")
    return VARIABLE.sub(lambda match: str(names[match[0]]), text)


def _captures(config: Configuration, ends: list[str]) -> Iterator[dict[str, Any]]:
    if config.text("tcpdump_logger", "1") == "1":
        least, most = SNAPLEN_BYTES
        wanted = int(config.number("pcap_snaplen", 80)) or most
        yield {"at": ends, "snaplen": max(least, min(wanted, most))}


def _loggers(
    config: Configuration, ends: list[str], bottleneck: BottleneckQueues | None
) -> Iterator[dict[str, Any]]:
    if config.text("tcpstats_logger", "1") == "1":
        tcp: dict[str, Any] = {"logger": "tcp-state", "at": ends}
        if config.text("linux_tcp_logger") == "ttprobe":
            tcp["prefer"] = "tcp-probe"
        elif any(config.system(host) == "linux" for host, name in config.names.items() if name in ends):
            tcp["interval"] = milliseconds(config.number("web10g_poll_interval", 10))
        yield tcp
    if bottleneck is not None:
        yield {"logger": "queue", "at": config.names[bottleneck.router], "interval": "100ms"}
    if config.text("bc_ping_enable", "0") == "1":
        every = seconds(1 / (config.number("bc_ping_rate", 1) or 1))
        beacons = {"logger": "beacons", "at": list(config.names.values()), "interval": every}
        yield {**beacons, "address": config.text("bc_ping_address", "224.0.1.199")}


# The testbed


def _testbed(config: Configuration, bottleneck: BottleneckQueues | None, name: str) -> dict[str, Any]:
    tree: dict[str, Any] = {"testbed": name, "description": "From a TEACUP configuration."}
    tree["ssh"] = {"user": str(config.module.values.get("env.user") or "root")}
    tree |= _speed(config.module.values.get("TPCONF_linkspeed", "auto"))
    tree["hosts"] = {own: _host(config, host, bottleneck) for host, own in config.names.items()}
    if bottleneck is not None:
        router = config.names[bottleneck.router]
        interface_at = {
            config.network(one["address"]): interface
            for interface, one in tree["hosts"][router]["interfaces"].items()
        }
        down, up = (interface_at[side] for side in bottleneck.sides)
        tree["bottleneck"] = {"router": router, "from": down, "to": up}
    return tree


def _host(config: Configuration, host: str, bottleneck: BottleneckQueues | None) -> dict[str, Any]:
    system, own = config.system(host), config.addresses.get(host, [])
    if bottleneck is None:
        sends = [host] == config.hosts[:1]
    else:
        sends = any(config.network(one).subnet_of(bottleneck.sides[0]) for one in own)
    role = "router" if host in config.routers else "sender" if sends else "receiver"
    address, _, port = host.partition(":")
    tree: dict[str, Any] = {"os": system, "role": role, "address": address}
    tree |= {"ssh": {"port": int(port)}} if port.isdecimal() else {}
    tree["interfaces"] = {
        f"{INTERFACES[system]}{index}": {"address": f"{one}/24", "link": link_of(one)}
        for index, one in enumerate(own, 1)
    }
    tree |= _speed(dict(config.items("host_linkspeed")).get(host, "auto"))
    if "TPCONF_boot_timeout" in config.module.values:
        tree["boot_timeout"] = seconds(config.number("boot_timeout", 100))
    return tree


def _speed(value: Any) -> dict[str, Any]:
    return {"settings": {"speed.rate": f"{value}Mbit"}} if str(value).isdecimal() else {}


def _power(config: Configuration) -> Iterator[str]:
    """Yield comments that name the power controller's outlet of each host.

    The login of the power controller is not written to the testbed file.
    """
    kind = config.text("power_ctrl_type", "9258HP")[:20]
    for host, one in config.items("host_power_ctrlport"):
        if isinstance(one, list | tuple) and len(one) == 2 and host in config.names:
            yield (
                f"{config.names[host]}: outlet {str(one[1])[:20]} of the {kind} at {str(one[0])[:40]}; "
                "to use it, add power: {on, off, outlet} to the host; its commands read the login from a file"
            )
