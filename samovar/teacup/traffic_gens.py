"""Convert TEACUP's traffic_gens to flows: the generator, the sending end, and the key for each argument."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

from samovar.errors import SamovarError
from samovar.teacup.configuration import Configuration, TeacupEntry
from samovar.teacup.convert_values import (
    Convert,
    algorithm,
    interval,
    kibibytes,
    kilobits,
    number,
    rate,
    seconds,
    size,
    whole_bytes,
)
from samovar.teacup.parameters import Names, NoCounterpartError, Target
from samovar.teacup.static_python import UnreadableError
from samovar.units import format_rate

READ_ELSEWHERE = {
    "duration", "client", "clients", "server", "servers", "dest", "serv", "hostname", "port",
    "serv_port", "server_port_start", "proto", "num_responders", "directory", "name", "parameters",
}  # fmt: skip
"""Arguments that no `Generator` lists, because they are read in the same way for all flows or commands."""
COMMAND = ("directory", "name", "parameters")
"""The arguments of the command of start_custom_traffic."""
OF_TEACUP = {
    "counter", "file_prefix", "remote_dir", "local_dir", "check", "wait", "kill", "server_port", "docroot",
    "config_dir", "config_in", "copy_file", "add_prefix", "browser", "player_path", "mpd", "game_type",
    "noclients_game",
}  # fmt: skip
"""Arguments about how TEACUP starts its programs, which are left out without a note."""
SERVERS = {
    "start_http_server", "start_nginx_server", "create_http_dash_content", "create_http_incast_content",
}  # fmt: skip
"""Functions that need no counterpart, because a flow of samovar starts its server and creates its content."""
IPERF_UDP_LENGTH = "1470B"
"""The payload of a UDP packet of iperf 2.0.5, which TEACUP starts without the option --len."""


class Generator(NamedTuple):
    """A samovar generator, TEACUP's arguments for its two ends, and the keys for TEACUP's other arguments."""

    name: str
    sender: str
    receiver: str
    keys: Mapping[str, tuple[str, Convert]]
    remark: str = ""


INCAST: Mapping[str, tuple[str, Convert]] = {
    "period": ("period", seconds),
    "response_size": ("response", kibibytes),
}
GENERATORS: Mapping[str, Generator] = {
    "start_iperf": Generator(
        "iperf", "client", "server",
        {"congestion_algo": ("cc", algorithm), "mss": ("mss", whole_bytes),
         "buf_size": ("socket_buffer", size), "rate": ("rate", rate)},
    ),
    "start_ping": Generator("ping", "client", "dest", {"rate": ("interval", interval)}),
    "start_nttcp": Generator(
        "iperf-udp", "client", "server", {"psize": ("length", whole_bytes), "interval": ("rate", str)}
    ),
    "start_httperf": Generator(
        "http", "server", "client", {"period": ("period", seconds)}, "objects have the default size"
    ),
    "start_httperf_dash": Generator(
        "dash", "server", "client",
        {"rate": ("rate", kilobits), "cycle": ("cycle", seconds), "prefetch": ("prefetch", seconds)},
    ),
    "start_httperf_incast": Generator("incast", "servers", "client", INCAST),
    "start_httperf_incast_n": Generator("incast", "servers", "client", INCAST),
    "start_fps_game": Generator(
        "game", "clients", "server",
        {"c2s_interval": ("interval", seconds), "c2s_psize": ("length", whole_bytes),
         "s2c_interval": ("reply_interval", seconds)},
        "samovar's generator has packet sizes of its own",
    ),
    "start_dash_streaming_dashjs": Generator(
        "dash", "serv", "client", {"chunk_size": ("cycle", seconds)}, "requested without a browser"
    ),
    "start_custom_traffic": Generator(
        "command", "hostname", "hostname", {}, "the command must last as long as the flow"
    ),
}  # fmt: skip
"""The counterpart of each function; `interval` of start_nttcp becomes a rate."""


def flows_of(config: Configuration) -> Iterator[tuple[dict[str, Any], list[Target]]]:
    """Yield each flow as a mapping of its constant keys, and a Target for each of its other keys."""
    ports: set[tuple[str, int]] = set()
    for entry in config.traffic():
        generator = GENERATORS.get(entry.function)
        where = f"{entry.function or 'no function'} (id {entry.id[:20]})"
        if generator is None:
            if entry.function not in SERVERS:
                config.note("TPCONF_traffic_gens", f"{where}: has no counterpart in samovar")
            continue
        try:
            flows = list(_flows(config, entry, generator))
            targets = list(_targets(config, entry, generator, flows[0]["generator"]))
        except (NoCounterpartError, UnreadableError, SamovarError) as error:
            config.note("TPCONF_traffic_gens", f"{where}: {error}; it is left out")
            continue
        for flow in flows:
            if "port" in flow:
                places = {(flow[end], flow["port"]) for end in ("from", "to")}
                if places & ports:  # another flow's server listens there
                    del flow["port"]
                ports |= places
            at = f"traffic.{flow['flow']}"
            yield flow, [replace(one, key=f"{at}.{one.key}") for one in targets]


def _flows(config: Configuration, entry: TeacupEntry, kind: Generator) -> Iterator[dict[str, Any]]:
    """Yield the constant keys of a flow for each pair of sender and receiver."""
    names, generator = config.defaults, kind.name
    if generator == "iperf" and str(entry.read("proto", names, "tcp")).lower() == "udp":
        generator = "iperf-udp"
    varied = frozenset[str]().union(*(one.variables for one in config.parameters()))
    for name in sorted(entry.arguments.keys() & READ_ELSEWHERE - {"duration", *COMMAND}):
        if entry.variables(name) & varied:
            where = f"{entry.function} (id {entry.id[:20]})"
            config.note("TPCONF_traffic_gens", f"{where}: {name} cannot vary; it has its default value")
    if kind.remark:
        config.note("TPCONF_traffic_gens", f"{entry.function}: {kind.remark}")
    label = f"{generator}-{re.sub(r'[^A-Za-z0-9]', '', entry.id) or 'x'}"
    senders = _ends(config, entry, kind.sender)
    if "num_responders" in entry.arguments:  # the first servers, at consecutive ports
        count = int(number(entry.read("num_responders", names)))
        if count < 1:
            raise NoCounterpartError("num_responders must be at least 1")
        first = int(number(entry.read("server_port_start", names)))
        senders = [(host, str(first + index)) for index, (host, _) in enumerate(senders[:count])]
    start = seconds(entry.start)
    pairs = list(product(senders, _ends(config, entry, kind.receiver)))
    for index, ((sender, sender_port), (receiver, receiver_port)) in enumerate(pairs, 1):
        if receiver == sender:  # TEACUP runs a command at one host, but a flow needs two
            others = (host for host in [*config.hosts, *config.routers] if host != sender)
            receiver = next(others, sender)
        flow: dict[str, Any] = {
            "flow": f"{label}-{index}" if len(pairs) > 1 else label,
            "generator": generator,
            "from": config.names[sender],
            "to": config.names[receiver],
        }
        server_port = receiver_port if generator == "game" else sender_port
        port = server_port or str(entry.read("port", names, entry.read("serv_port", names)))
        if port.isdecimal() and 0 < int(port) < 65536 and generator not in ("ping", "command"):
            flow["port"] = int(port)
        if start != "0s":
            flow["start"] = start
        yield flow


def _ends(config: Configuration, entry: TeacupEntry, argument: str) -> list[tuple[str, str]]:
    """Return the hosts of an argument, as control names, each with its port if it has one."""
    text = str(entry.read(argument, config.defaults))
    found = []
    for one in text.split(",") if argument in ("servers", "clients") else [text]:
        host, _, port = one.strip().partition(":")
        has_port = one.strip() not in config.names  # a control name may have a port too
        found.append((config.host_of(host if has_port else one.strip()), port if has_port else ""))
    return found


def _targets(config: Configuration, entry: TeacupEntry, kind: Generator, generator: str) -> Iterator[Target]:
    """Yield a Target for each key that an entry of traffic_gens sets in its flow."""
    default = config.number("duration", 30)

    def duration(names: Names) -> str:
        return seconds(entry.read("duration", names, names.get("V_duration", default)))

    lasts = entry.variables("duration") if "duration" in entry.arguments else frozenset({"V_duration"})
    yield Target("duration", lasts, duration)
    if generator == "command":
        yield Target("run", entry.variables(*COMMAND), partial(_command, entry))
    if generator == "iperf-udp" and entry.function == "start_iperf":
        yield Target("length", frozenset(), lambda _: IPERF_UDP_LENGTH)
    for name in entry.arguments:
        if name in kind.keys and not (
            generator == "iperf-udp" and name in ("congestion_algo", "mss", "buf_size")
        ):
            key, convert = kind.keys[name]
            if entry.function == "start_nttcp" and name == "interval":
                yield Target(key, entry.variables("interval", "psize"), partial(_rate_of_packets, entry))
            else:
                yield Target(key, entry.variables(name), partial(_converted, entry, name, convert))
        elif name not in READ_ELSEWHERE | OF_TEACUP:
            config.note("TPCONF_traffic_gens", f"{entry.function}: {name[:40]} has no counterpart")


def _command(entry: TeacupEntry, names: Names) -> str:
    folder, *words = (str(entry.read(one, names)) for one in COMMAND)
    return (f"{folder.rstrip('/')}/" if folder else "") + " ".join(filter(None, words))


def _converted(entry: TeacupEntry, name: str, convert: Convert, names: Names) -> str | None:
    value = entry.read(name, names)
    return None if value == "" else convert(value)


def _rate_of_packets(entry: TeacupEntry, names: Names) -> str:
    """Return the rate of packets of `psize` bytes at an interval in milliseconds."""
    bits = number(entry.read("psize", names, 1000)) * 8
    return format_rate(round(bits * 1000 / (number(entry.read("interval", names, 20)) or 1)))
