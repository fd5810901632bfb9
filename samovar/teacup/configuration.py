"""Represent a TEACUP configuration as values: hosts and their addresses, queues, traffic, parameters."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from samovar.errors import DefinitionError
from samovar.teacup.convert_values import number
from samovar.teacup.parameters import Names, NoCounterpartError, Parameter
from samovar.teacup.static_python import Module, evaluate, parse

VARIABLE = re.compile(r"V_[A-Za-z0-9_]+")
SYSTEMS = ("linux", "freebsd")


def variables_of(*expressions: ast.expr) -> frozenset[str]:
    """Return the V_ variables on which expressions depend."""
    nodes = [node for expression in expressions for node in ast.walk(expression)]
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and VARIABLE.match(node.id))


@dataclass(frozen=True)
class TeacupEntry:
    """An entry of router_queues or traffic_gens: its id, the function's name if any, and its arguments.

    `start` is the text of the time in seconds at which traffic starts.
    """

    id: str
    function: str
    arguments: Mapping[str, ast.expr]
    start: str

    def read(self, name: str, names: Names, default: Any = "") -> Any:
        """Return the value of an argument, or the default if it is missing; raises UnreadableError."""
        return evaluate(self.arguments[name], names) if name in self.arguments else default

    def variables(self, *names: str) -> frozenset[str]:
        """Return the V_ variables on which the arguments in `names` depend."""
        return variables_of(*(self.arguments[name] for name in names if name in self.arguments))


class Configuration:
    """The values of a TEACUP configuration.

    `notes` collects pairs of a variable and a remark about values that have no counterpart. `routers` and
    `hosts` (end hosts) are control names.
    """

    def __init__(self, module: Module, path: Path) -> None:
        self.module, self.path = module, path
        self.notes: list[tuple[str, str]] = []
        self.routers = [str(one) for one in self.listed("router")]
        self.hosts = [str(one) for one in self.listed("hosts")]

    def note(self, variable: str, text: str) -> None:
        """Add a note once."""
        if (variable, text) not in self.notes:
            self.notes.append((variable, text))

    def get(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        """Return TPCONF_name, or the default if it is missing.

        If TPCONF_name has the wrong type, add a note and return the default.
        """
        value = self.module.values.get(f"TPCONF_{name}", default)
        if isinstance(value, kind):
            return value
        self.note(f"TPCONF_{name}", "is not of the type that TEACUP expects; it is left out")
        return default

    def items(self, name: str) -> list[tuple[str, Any]]:
        """Return the keys of the mapping TPCONF_name, as text, and its values."""
        return [(str(key), value) for key, value in self.get(name, dict, {}).items()]

    def listed(self, name: str) -> list[Any]:
        """Return the entries of the list TPCONF_name."""
        return list(self.get(name, (list, tuple), []))

    def text(self, name: str, default: str = "") -> str:
        """Return TPCONF_name as text. Numbers are accepted: a flag is 0, '0', 1 or '1'."""
        return str(self.get(name, (str, int, float), default))

    def number(self, name: str, default: float) -> float:
        """Return TPCONF_name as a number. If it is not a number, add a note and return the default."""
        try:
            return number(self.module.values.get(f"TPCONF_{name}", default))
        except NoCounterpartError as error:
            self.note(f"TPCONF_{name}", f"{error}; it is left out")
            return default

    def refuse(self, message: str) -> DefinitionError:
        """Return the error for a configuration that cannot be imported."""
        return DefinitionError.at(self.path, message)

    # Hosts

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The names of hosts in samovar: control names, without port and domain where this is unambiguous."""
        controls = dict.fromkeys([*self.routers, *self.hosts])
        short = {one: _without_port_and_domain(one) for one in controls}
        hosts = Counter(short.values())
        names = {one: short[one] if hosts[short[one]] == 1 else one for one in controls}
        return {
            one: re.sub(r"[^A-Za-z0-9.-]", "-", name).strip("-.") or "host" for one, name in names.items()
        }

    @cached_property
    def addresses(self) -> Mapping[str, list[str]]:
        """The testbed addresses of every host."""
        found: dict[str, list[str]] = {}
        for host, several in self.items("host_internal_ip"):
            for one in several if isinstance(several, list | tuple) else [several]:
                try:
                    found.setdefault(host, []).append(str(IPv4Address(str(one))))
                except ValueError:
                    self.note("TPCONF_host_internal_ip", f"{str(one)[:40]} of {host} is not an IPv4 address")
        return found

    def system(self, host: str) -> str:
        """Return the operating system of a host, or linux if samovar does not support the host's own."""
        wanted = str(dict(self.items("host_os")).get(host, "Linux"))
        if wanted.lower() in SYSTEMS:
            return wanted.lower()
        self.note("TPCONF_host_os", f"{host} ran {wanted[:20]}: replace it by a Linux or FreeBSD host")
        return "linux"

    def network(self, end: Any) -> IPv4Network:
        """Return the network of `end`, which is a host (by its first address), an address or a network."""
        text = next(iter(self.addresses.get(str(end), ())), str(end))
        try:
            return IPv4Network(text, strict=False)
        except ValueError:
            raise NoCounterpartError(f"{text[:40]} is not a host, an address or a network") from None

    def host_of(self, end: Any) -> str:
        """Return the control name of a host given by its name or address; raises NoCounterpartError."""
        text = str(end)
        for host in self.names:
            if text == host or text in self.addresses.get(host, ()):
                return host
        raise NoCounterpartError(f"{text[:40]} is not one of TPCONF_hosts and TPCONF_router")

    # Queues, traffic and parameters

    def queues(self) -> list[tuple[str, list[TeacupEntry]]]:
        """Return the queues of each router. A list that is not for a router belongs to the first router."""
        written = self.get("router_queues", (list, tuple, dict), [])
        if isinstance(written, dict):
            return [(str(one), self._entries("router_queues", several)) for one, several in written.items()]
        if len(self.routers) > 1:
            others = ", ".join(self.routers[1:])
            self.note("TPCONF_router", f"{others}: only the first router becomes the bottleneck")
        return [(one, self._entries("router_queues", written)) for one in self.routers[:1]]

    def traffic(self) -> list[TeacupEntry]:
        """Return the entries of traffic_gens."""
        return self._entries("traffic_gens", self.listed("traffic_gens"))

    def _entries(self, name: str, several: Any) -> list[TeacupEntry]:
        """Return the entries of TPCONF_name.

        In the file, an entry is (start, id, function call) for traffic, and (id, arguments) for queues.
        """
        found, size = [], 2 if name == "router_queues" else 3
        for index, one in enumerate(several if isinstance(several, list | tuple) else []):
            try:
                if not isinstance(one, list | tuple) or len(one) != size:
                    raise self.refuse(f"entry {index} must have {size} texts")
                start, id_, text = (["0"] * (3 - size)) + [str(text) for text in one]
                call = parse(f"f({text})", f"TPCONF_{name}[{index}]", "eval").body
                if not isinstance(call, ast.Call):
                    raise self.refuse(f"entry {index} is not a list of arguments")
            except DefinitionError as error:
                self.note(f"TPCONF_{name}", str(error))
                continue
            arguments = {one.arg: one.value for one in call.keywords if one.arg}
            function = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
            found.append(TeacupEntry(id_, function, arguments, start))
        return found

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The values of all names in the configuration, and the default value of each V_ variable.

        The extras of a parameter that is varied override TPCONF_variable_defaults, as in TEACUP.
        """
        first = [one.levels[0] for one in self._all_parameters.values() if one.levels]
        varied = {name: value for level in first for name, value in level.items()}
        extras = {name: value for one in self.parameters() for name, value in one.extras.items()}
        return {**self.module.values, **varied, **dict(self.items("variable_defaults")), **extras}

    @cached_property
    def _all_parameters(self) -> Mapping[str, Parameter]:
        found = {}
        for key, one in self.items("parameter_list"):
            try:
                names, shorts, values, extras = one
                found[key] = _parameter(key, list(names), list(shorts), list(values), dict(extras))
            except (TypeError, ValueError):
                needed = "needs names, short names, values and extras"
                self.note("TPCONF_parameter_list", f"{key[:40]}: {needed}")
        return found

    def parameters(self) -> list[Parameter]:
        """Return the parameters that are varied, with the one that changes least often first."""
        wanted = [str(one) for one in self.listed("vary_parameters")]
        for key in wanted:
            if key not in self._all_parameters:
                self.note("TPCONF_vary_parameters", f"{key[:40]} is not in TPCONF_parameter_list")
        return [self._all_parameters[key] for key in wanted if key in self._all_parameters]


def _without_port_and_domain(control: str) -> str:
    host = control.partition(":")[0]
    return host if re.fullmatch("[0-9.]+", host) else host.partition(".")[0]


def _parameter(
    key: str, names: Sequence[Any], shorts: Sequence[Any], values: Sequence[Any], extras: Mapping[str, Any]
) -> Parameter:
    """Return a parameter. If it sets several variables, each of its levels has a value for every variable."""
    labels, levels = [], []
    for value in values:
        together = list(value) if len(names) > 1 and isinstance(value, list | tuple) else [value]
        levels.append(dict(zip(map(str, names), together, strict=False)))
        labels.append("-".join(str(one).replace("_", "-") for one in together))
    name = re.sub(r"[^A-Za-z0-9-]", "-", str(shorts[0]) if shorts else key).strip("-") or "parameter"
    return Parameter(name, frozenset(map(str, names)), tuple(labels), tuple(levels), extras)
