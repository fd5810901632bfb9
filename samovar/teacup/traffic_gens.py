"""TEACUP's traffic generators as flows: which generator, which end sends, and which argument is which key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from samovar.errors import SamovarError
from samovar.teacup.configuration import Configuration, TeacupEntry
from samovar.teacup.parameters import Names, NoCounterpartError, Target
from samovar.teacup.static_python import UnreadableError
from samovar.units import format_bytes, format_duration, format_rate, format_share

SCALES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
IGNORED = frozenset(
    (
        *(
            "counter",
            "file_prefix",
            "remote_dir",
            "local_dir",
            "check",
            "wait",
            "kill",
            "server_port",
            "port",
        ),
        *("docroot", "config_dir", "config_in", "client", "server", "dest", "clients", "servers", "serv"),
        *("serv_port", "proto", "hostname", "name", "directory", "parameters", "copy_file", "add_prefix"),
        *("browser", "player_path", "mpd", "game_type", "num_responders", "noclients_game", "duration"),
    )
)
"""Arguments that are read elsewhere, or that say how TEACUP starts a program."""
SERVERS = (
    "start_http_server",
    "start_nginx_server",
    "create_http_dash_content",
    "create_http_incast_content",
)
"""Functions that nothing has to say here: a flow brings its server and its content."""
Convert = Callable[[Any], str]


def number(value: Any) -> float:
    """Return a number; raises NoCounterpartError."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a number") from None


def scaled(factor: float, write: Callable[[float], str]) -> Convert:
    """Return a converter of numbers in units of `factor`."""
    return lambda value: write(number(value) * factor)


def rate(value: Any) -> str:
    """Return a rate of tc, dummynet or iperf: 8mbit, 512kbit, 10M, or bit/s."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([kKmMgG]?)(?:bit|bits|bps|bits/s)?", str(value).strip())
    if match is None:
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a rate")
    return format_rate(round(float(match[1]) * SCALES[match[2].lower()]))


def size(value: Any) -> str:
    """Return a size of iperf: 64k, 2m, or bytes."""
    match = re.fullmatch(r"([0-9]+) *([kKmMgG]?)", str(value).strip())
    if match is None:
        raise NoCounterpartError(f"{str(value)[:40]!r} is not a size")
    power = {"": 0, "k": 1, "m": 2, "g": 3}[match[2].lower()]
    return format_bytes(int(match[1]) * 1024**power)


def frequency(value: Any) -> str:
    """Return the interval of a number per second."""
    return format_duration(round(1 / (number(value) or 1), 9))


def algorithm(value: Any) -> str:
    """Return a congestion control."""
    if str(value).lower() in ("compound", ""):
        raise NoCounterpartError(
            f"{value or 'an empty name'} is not a congestion control of Linux or FreeBSD"
        )
    return {"reno": "newreno"}.get(str(value).lower(), str(value))


seconds = scaled(1, format_duration)
milliseconds = scaled(1e-3, format_duration)
share = scaled(1, format_share)
kilobytes = scaled(1, lambda value: format_bytes(round(value * 1000)))
whole_bytes = scaled(1, lambda value: format_bytes(round(value)))
kilobits = scaled(1000, lambda value: format_rate(round(value)))


class Generator(NamedTuple):
    """A generator here, the arguments with the ends of its data, and the keys of the other arguments."""

    name: str
    sender: str
    receiver: str
    keys: Mapping[str, tuple[str, Convert]]
    remark: str = ""


INCAST: Mapping[str, tuple[str, Convert]] = {
    "period": ("period", seconds),
    "response_size": ("response", kilobytes),
}
GENERATORS: Mapping[str, Generator] = {
    "start_iperf": Generator(
        "iperf", "client", "server",
        {"congestion_algo": ("cc", algorithm), "mss": ("mss", whole_bytes),
         "buf_size": ("socket_buffer", size), "rate": ("rate", rate)},
    ),
    "start_ping": Generator("ping", "client", "dest", {"rate": ("interval", frequency)}),
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
    "start_httperf_incast": Generator(
        "incast", "servers", "client", INCAST
    ),
    "start_httperf_incast_n": Generator(
        "incast", "server", "client", INCAST
    ),
    "start_fps_game": Generator(
        "game", "clients", "server",
        {"c2s_interval": ("interval", seconds), "c2s_psize": ("length", whole_bytes),
         "s2c_interval": ("reply_interval", seconds)},
        "the sizes of the game's packets are the generator's own",
    ),
    "start_dash_streaming_dashjs": Generator(
        "dash", "serv", "client", {"chunk_size": ("cycle", seconds)}, "requested without a browser"
    ),
    "start_custom_traffic": Generator(
        "command", "hostname", "hostname", {}, "the command must last as long as the flow"
    ),
}  # fmt: skip


def flows_of(config: Configuration) -> Iterator[tuple[dict[str, Any], list[Target]]]:
    """Yield each flow with its constant keys, and the targets of its others."""
    ports: set[tuple[str, str]] = set()
    labels: set[str] = set()
    for entry in config.traffic():
        generator = GENERATORS.get(entry.function)
        where = f"{entry.function or 'no function'} (id {entry.id[:20]})"
        if generator is None:
            if entry.function not in SERVERS:
                config.note("TPCONF_traffic_gens", f"{where}: nothing like it here")
            continue
        try:
            for flow, targets in _flows(config, entry, generator):
                label = next(one for one in _numbered(flow["flow"]) if one not in labels)
                labels.add(label)
                places = {(flow[end], str(flow.get("port", ""))) for end in ("from", "to")}
                if places & ports:
                    flow.pop("port", None)
                ports |= places
                targets = [
                    Target(f"traffic.{label}.{one.key}", one.variables, one.value, one.required)
                    for one in targets
                ]
                yield {**flow, "flow": label}, targets
        except (NoCounterpartError, UnreadableError, SamovarError) as error:
            config.note("TPCONF_traffic_gens", f"{where}: {error}; it is left out")


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}-{number}" for number in range(2, 10_000))


def _flows(
    config: Configuration, entry: TeacupEntry, kind: Generator
) -> Iterator[tuple[dict[str, Any], list[Target]]]:
    names, generator = config.defaults, kind.name
    if generator == "iperf" and str(entry.read("proto", names, "tcp")).lower() == "udp":
        generator = "iperf-udp"
    if kind.remark:
        config.note("TPCONF_traffic_gens", f"{entry.function}: {kind.remark}")
    ends = [_ends(config, entry, argument) for argument in (kind.sender, kind.receiver)]
    targets = list(_targets(config, entry, kind, generator))
    for sender, sender_port in ends[0]:
        for receiver, _ in ends[1]:
            other = next((host for host in config.names if host != sender), sender)
            flow: dict[str, Any] = {
                "flow": f"{generator}-{re.sub(r'[^A-Za-z0-9]', '', entry.id) or 'x'}",
                "generator": generator,
                "from": config.names[sender],
                "to": config.names[other if receiver == sender else receiver],
            }
            port = sender_port or str(entry.read("port", names, entry.read("serv_port", names)))
            if port.isdecimal() and 0 < int(port) < 65536 and generator not in ("ping", "command"):
                flow["port"] = int(port)
            if generator == "command":
                folder, *words = (str(entry.read(one, names)) for one in ("directory", "name", "parameters"))
                flow["run"] = (f"{folder.rstrip('/')}/" if folder else "") + " ".join(filter(None, words))
            if "num_responders" in entry.arguments:
                flow["count"] = int(number(entry.read("num_responders", names)))
            yield flow, targets


def _ends(config: Configuration, entry: TeacupEntry, argument: str) -> list[tuple[str, str]]:
    """Return the hosts of an argument, control names, each with its port if it has one."""
    text = str(entry.read(argument, config.defaults))
    found = []
    for one in text.split(",") if argument in ("servers", "clients") else [text]:
        host, _, port = one.strip().partition(":")
        known = one.strip() if one.strip() in config.names else host
        found.append((config.host_of(known), port if known == host else ""))
    return found


def _targets(config: Configuration, entry: TeacupEntry, kind: Generator, generator: str) -> Iterator[Target]:
    yield Target("start", entry.start.variables, lambda names: _not_zero(seconds(entry.start.value(names))))
    duration = entry.arguments.get("duration")
    default = config.get("duration", (int, float, str), 30)
    yield Target(
        "duration",
        duration.variables if duration else frozenset({"V_duration"}),
        lambda names: seconds(entry.read("duration", names, names.get("V_duration", default))),
    )
    paced = entry.function == "start_nttcp"
    for name, term in entry.arguments.items():
        if name in kind.keys and not (generator == "iperf-udp" and name in ("congestion_algo", "mss")):
            key, convert = kind.keys[name]
            if paced and name == "interval":
                several = (
                    entry.arguments[one].variables for one in ("interval", "psize") if one in entry.arguments
                )
                yield Target(key, frozenset[str]().union(*several), partial(_rate_of_packets, entry))
            else:
                yield Target(key, term.variables, partial(_converted, entry, name, convert))
        elif name not in IGNORED:
            config.note("TPCONF_traffic_gens", f"{entry.function}: {name[:40]} has no counterpart")


def _not_zero(text: str) -> str | None:
    return None if text == "0s" else text


def _converted(entry: TeacupEntry, name: str, convert: Convert, names: Names) -> str | None:
    found = entry.read(name, names)
    return None if found == "" else convert(found)


def _rate_of_packets(entry: TeacupEntry, names: Names) -> str:
    """Return the rate of packets of `psize` bytes at an interval in milliseconds."""
    bits = number(entry.read("psize", names, 1000)) * 8
    return format_rate(round(bits * 1000 / (number(entry.read("interval", names, 20)) or 1)))
