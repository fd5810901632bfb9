"""A TEACUP configuration as values: hosts and their addresses, queues, traffic, parameters."""

from __future__ import annotations

import ast
import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from samovar.errors import DefinitionError, Problem
from samovar.teacup.parameters import Names, NoCounterpartError, Parameter
from samovar.teacup.static_python import Module, evaluate, parse

VARIABLE = re.compile(r"V_[A-Za-z0-9_-]+")
SYSTEMS = {"linux": "linux", "freebsd": "freebsd"}
DEFAULT_CC = {"linux": "cubic", "freebsd": "newreno"}
Network = ipaddress.IPv4Network


@dataclass(frozen=True)
class Argument:
    """An argument of a queue or traffic entry: its expression, and the variables in it."""

    node: ast.expr

    @property
    def variables(self) -> frozenset[str]:
        """The V_ variables that it depends on."""
        found = (node.id for node in ast.walk(self.node) if isinstance(node, ast.Name))
        return frozenset(name for name in found if name.startswith("V_"))

    def value(self, names: Names) -> Any:
        """Return its value; raises UnreadableError."""
        return evaluate(self.node, names)


@dataclass(frozen=True)
class TeacupEntry:
    """An entry of router_queues or traffic_gens: its id, the function's name if any, and its arguments."""

    id: str
    function: str
    arguments: Mapping[str, Argument]
    start: Argument

    def read(self, name: str, names: Names, default: Any = "") -> Any:
        """Return the value of an argument; raises UnreadableError."""
        return self.arguments[name].value(names) if name in self.arguments else default


class Configuration:
    """The values of a configuration that was read; `notes` collects what has no counterpart, by variable."""

    def __init__(self, module: Module, path: Path) -> None:
        self.module, self.path = module, path
        self.notes: list[tuple[str, str]] = []

    def note(self, variable: str, text: str) -> None:
        """Add a note once."""
        if (variable, text) not in self.notes:
            self.notes.append((variable, text))

    def get(self, name: str, kind: type | tuple[type, ...], default: Any) -> Any:
        """Return TPCONF_name if it was read and has the type; the default otherwise, with a note."""
        value = self.module.values.get(f"TPCONF_{name}", default)
        if isinstance(value, kind):
            return value
        self.note(f"TPCONF_{name}", "is not of the type that TEACUP expects; it is left out")
        return default

    def text(self, name: str, default: str = "") -> str:
        """Return TPCONF_name as text: most flags are '0' or '1'."""
        return str(self.get(name, (str, int, float), default))

    def refuse(self, message: str) -> DefinitionError:
        """Return the error of a configuration without which nothing can be written."""
        return DefinitionError([Problem(str(self.path), 0, 0, message)])

    # Hosts

    @cached_property
    def routers(self) -> list[str]:
        """The control names of routers."""
        return [str(one) for one in self.get("router", (list, tuple), [])]

    @cached_property
    def hosts(self) -> list[str]:
        """The control names of end hosts."""
        return [str(one) for one in self.get("hosts", (list, tuple), [])]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The name here of every host: its control name without port and domain, if that is unique."""
        found: dict[str, str] = {}
        for host in dict.fromkeys([*self.routers, *self.hosts]):
            name = host.partition(":")[0]
            short = name if re.fullmatch(r"[0-9.]+", name) else name.partition(".")[0]
            short = re.sub(r"[^A-Za-z0-9.-]", "-", short).strip("-.") or "host"
            taken = found.values()
            found[host] = next(
                one for one in (short, *(f"{short}-{n}" for n in range(2, 10_000))) if one not in taken
            )
        return found

    @cached_property
    def addresses(self) -> Mapping[str, list[str]]:
        """The testbed addresses of every host."""
        found: dict[str, list[str]] = {}
        for host, several in self.get("host_internal_ip", dict, {}).items():
            for one in several if isinstance(several, list | tuple) else [several]:
                try:
                    found.setdefault(str(host), []).append(str(ipaddress.IPv4Address(str(one))))
                except ValueError:
                    self.note("TPCONF_host_internal_ip", f"{str(one)[:40]} of {host} is not an IPv4 address")
        return found

    def system(self, host: str) -> str:
        """Return the operating system of a host, linux if there is none like it here."""
        wanted = str(self.get("host_os", dict, {}).get(host, "Linux"))
        if wanted.lower() not in SYSTEMS:
            self.note("TPCONF_host_os", f"{host} ran {wanted[:20]}: replace it by a Linux or FreeBSD host")
        return SYSTEMS.get(wanted.lower(), "linux")

    def network(self, end: Any) -> Network:
        """Return the packets' end as a network: a host's first address, an address, or a network."""
        text = str(end)
        text = next(iter(self.addresses.get(text, ())), text)
        try:
            return ipaddress.IPv4Network(text, strict=False)
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
        """Return the queues of each router; one list applies to all routers."""
        written = self.get("router_queues", (list, tuple, dict), [])
        by_router = written if isinstance(written, dict) else dict.fromkeys(self.routers[:1], written)
        if not isinstance(written, dict) and len(self.routers) > 1:
            self.note(
                "TPCONF_router", f"{', '.join(self.routers[1:])}: only the first router has the queue here"
            )
        return [(str(one), self._entries("router_queues", several)) for one, several in by_router.items()]

    def traffic(self) -> list[TeacupEntry]:
        """Return the entries of traffic_gens."""
        return self._entries("traffic_gens", self.get("traffic_gens", (list, tuple), []))

    def _entries(self, name: str, several: Any) -> list[TeacupEntry]:
        found = []
        for number, one in enumerate(several if isinstance(several, list | tuple) else []):
            texts = [str(text) for text in one] if isinstance(one, list | tuple) else []
            start, id_, text = (
                (["0", *texts] if name == "router_queues" else texts)[:3] if len(texts) > 1 else ("", "", "")
            )
            try:
                call = parse(f"f({self._identifiers(text)})", f"TPCONF_{name}[{number}]", "eval").body
                begin = parse(self._identifiers(start) or "0", f"TPCONF_{name}[{number}]", "eval").body
            except DefinitionError as error:
                self.note(f"TPCONF_{name}", str(error))
                continue
            arguments = {key.arg: Argument(key.value) for key in call.keywords if key.arg}
            function = call.args[0].id if call.args and isinstance(call.args[0], ast.Name) else ""
            found.append(TeacupEntry(id_, function, arguments, Argument(begin)))
        return found

    def _identifiers(self, text: str) -> str:
        """Return a text whose V_ names are Python's: `-` is a letter of TEACUP's names."""
        return VARIABLE.sub(lambda name: _identifier(name[0]) if name[0] in self.defaults else name[0], text)

    @cached_property
    def defaults(self) -> Mapping[str, Any]:
        """The value of every V_ variable where it is not varied, and every name of the configuration."""
        own = {str(name): value for name, value in self.get("variable_defaults", dict, {}).items()}
        varied = {name: value for one in self._varied for name, value in one.items()}
        names = {**varied, **own}
        return {**self.module.values, **names, **{_identifier(name): value for name, value in names.items()}}

    @cached_property
    def _varied(self) -> list[Mapping[str, Any]]:
        """The first level of every parameter: where it has no default, some value must be known."""
        return [one.levels[0] for one in self._all_parameters.values() if one.levels]

    @cached_property
    def _all_parameters(self) -> Mapping[str, Parameter]:
        found = {}
        for key, one in self.get("parameter_list", dict, {}).items():
            if (
                isinstance(one, list | tuple)
                and len(one) == 4
                and all(isinstance(x, list | tuple) for x in one[:3])
            ):
                found[str(key)] = _parameter(str(key), *one)
            else:
                self.note(
                    "TPCONF_parameter_list", f"{str(key)[:40]}: needs names, short names, values and extras"
                )
        return found

    def parameters(self) -> list[Parameter]:
        """Return the parameters that are varied, the one that changes least often first."""
        wanted = [str(one) for one in self.get("vary_parameters", (list, tuple), [])]
        for key in wanted:
            if key not in self._all_parameters:
                self.note("TPCONF_vary_parameters", f"{key[:40]} is not in TPCONF_parameter_list")
        return [self._all_parameters[key] for key in wanted if key in self._all_parameters]


def _identifier(name: str) -> str:
    return name.replace("-", "__")


def _parameter(
    key: str, names: Sequence[Any], shorts: Sequence[Any], values: Sequence[Any], extras: Any
) -> Parameter:
    """Return a parameter; values of several variables move together."""
    several, labels, levels = [_identifier(str(name)) for name in names], [], []
    for value in values:
        together = value if len(several) > 1 and isinstance(value, list | tuple) else [value]
        levels.append(
            {**(extras if isinstance(extras, dict) else {}), **dict(zip(several, together, strict=False))}
        )
        labels.append("-".join(str(one).replace("_", "-") for one in together))
    name = re.sub(r"[^A-Za-z0-9-]", "-", str(shorts[0]) if shorts else key).strip("-") or "parameter"
    return Parameter(name, frozenset(several), tuple(labels), tuple(levels))


Converter = Callable[[Any], str]
