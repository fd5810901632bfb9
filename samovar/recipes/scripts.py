"""Render the shell scripts of a trial from recipes: one script for each host and phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property

from samovar.experiment import keys
from samovar.plan import Trial
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.fill_settings import CAPTURE_RECIPE, Setting, fill_settings
from samovar.recipes.quoting import quote
from samovar.recipes.recipe import BLOCKS, Recipe
from samovar.recipes.trial_programs import End, FlowEnds, Pace, Program, StopRule, parse_paces

NO_VALUES: Mapping[str, str] = {}
DELETE_FOLDER = 'cd / && rm -rf -- "$dir"\n'
"""Removes the trial's folder and everything in it."""
BODY = "# ---- the step itself ----\n"
"""Separates, in every script, the functions that all scripts share from the script's own text."""
FOUND = "---- as found ----"
RESTORED = "---- as restored ----"
"""Separator lines between the parts of the output of `finish`."""
DEFAULT_LIMITS = keys.Thresholds()
STOP_GRACE_S = 60.0
"""A logger that is not stopped ends by itself after the duration of the longest traffic plus this many
seconds. These seconds include the phase `arm`, in which a lab's only processor may need half a minute to
start all programs."""


class TrialScripts:
    """Renders the scripts of one trial; they depend only on the trial, the catalogue and the campaign's name.

    Methods named `..._body` return text without the functions that all scripts share; `script` adds them.
    `was` is the state of a host before the trial, as the script `read` printed it.
    """

    def __init__(self, trial: Trial, catalogue: Catalogue, campaign: str) -> None:
        self.trial, self.catalogue, self.campaign = trial, catalogue, campaign
        self.resolved = trial.resolved
        self._settings = cache(lambda host: tuple(fill_settings(host, trial.resolved, catalogue)))

    @property
    def folder(self) -> str:
        """The trial's folder on every host."""
        return f"/tmp/samovar/{self.campaign}/{self.trial.id}"

    @cached_property
    def flows(self) -> tuple[FlowEnds, ...]:
        """The flows of the trial with their recipes. Raises RecipeError."""
        return tuple(
            FlowEnds(flow, self.catalogue.recipe("generator", flow.generator, self.system(flow.from_host)))
            for flow in self.resolved.flows
        )

    @cached_property
    def rules(self) -> tuple[StopRule, ...]:
        """The rules by which flows end: `until` of a flow, and `stop: {when: ...}` for all flows."""

        def clients(label: str) -> frozenset[str]:
            # The label of a flow, or of all flows that one entry of the experiment made.
            return frozenset(e.name("client") for e in self.flows if label in (e.flow.label, e.flow.group))

        rules = [
            StopRule(clients(label), tuple(e.name("client") for e in self.flows if e.flow.until == label))
            for label in dict.fromkeys(ends.flow.until for ends in self.flows if ends.flow.until is not None)
        ]
        stop = self.resolved.stop
        if stop is not None and stop.when is not None:
            when, every = clients(stop.when), (ends.name("client") for ends in self.flows)
            rules.append(StopRule(when, tuple(name for name in every if name not in when)))
        return tuple(rules)

    def system(self, host: str) -> str:
        """Return the operating system of a host, such as linux or freebsd-11."""
        return self.resolved.hosts[host].system

    def script(self, host: str, parts: Iterable[str], functions: str = "") -> str:
        """Return a script for a host: functions that all scripts share, then `functions`, then the parts."""
        prelude = self._step(host, "prelude", {"folder": self.folder, "campaign": self.campaign})
        shared = self._step(host, "listening", {}) + self._step(host, "clock", {})
        return prelude + shared + functions + BODY + "".join(parts) + "exit 0\n"

    # ---- the state of a host: read it, change it, restore it ----

    def settings(self, host: str, lasting: bool | None = None) -> tuple[Setting, ...]:
        """Return the settings of a host in the order in which they are set.

        Lasting settings take effect after a reboot. If `lasting` is True, only lasting settings are
        returned; if it is False, only the other settings; if it is None, all settings.
        """
        return tuple(one for one in self._settings(host) if lasting is None or one.is_lasting is lasting)

    def blocks(
        self, host: str, block: str, lasting: bool | None = None, *, recipe: str = "", **more: object
    ) -> list[str]:
        """Render `block` for each setting of a host if the setting's recipe has this block.

        If `recipe` is given, only the setting of that name is rendered.
        """
        return [
            setting.recipe.render(block, {**setting.values, **more})
            for setting in self.settings(host, lasting)
            if block in setting.recipe.blocks and recipe in ("", setting.recipe.name)
        ]

    def read(self, host: str, lasting: bool | None = False) -> str:
        """Return the script that prints the state that the trial changes, as key=value lines."""
        return self.script(host, (self.read_body(host, lasting),))

    def read_body(self, host: str, lasting: bool | None = False) -> str:
        """Return the body of script `read`, which is identical for trials that change the same settings."""
        return self._values(host, lasting, "files", "oids") + "".join(self.blocks(host, "read", lasting))

    def _values(self, host: str, lasting: bool | None, *blocks: str) -> str:
        """Return a command that reads all files and kernel variables that recipes name in `blocks`."""
        words = (
            word for block in blocks for text in self.blocks(host, block, lasting) for word in text.split()
        )
        names = dict.fromkeys(words)
        return f"kernel_values {' '.join(names)}\n" if names else ""

    def set(self, host: str, was: Mapping[str, str], lasting: bool = False) -> str:
        """Return the script that changes the state from `was` to the trial's, then prints it as `read` does.

        Lasting settings are changed by a separate script (`lasting`). The script for all other settings reads
        the lasting settings, but does not change them.
        """
        changes = (self._values(host, lasting, "oids"), *self.blocks(host, "set", lasting, was=was))
        return self.script(
            host, (*changes, self._own_step(host, "settle"), self.read_body(host, lasting or None))
        )

    def wanted(self, host: str, lasting: bool | None = None) -> tuple[str, ...]:
        """Return what `set` must print: `key=value`, or `key*=text` if the value must contain the text."""
        text = "\n".join(self.blocks(host, "wanted", lasting))
        return tuple(line.strip() for line in text.splitlines() if line.strip())

    def restore(
        self, host: str, was: Mapping[str, str], *, lasting: bool = False, deletes: bool = False
    ) -> str:
        """Return the script that restores the state, last change first, then prints it as `read` does.

        The script first stops samplers and servers, except when it restores `lasting` settings. Captures
        continue, to record the last packets of the traffic. With `deletes` (for an aborted trial), it also
        deletes the trial's folder.
        """
        halts = () if lasting else self._halts(host)
        deletion = (DELETE_FOLDER,) if deletes else ()
        restoring = (self.restore_body(host, was, lasting), self.read_body(host, lasting))
        return self.script(host, (*halts, *restoring, *deletion))

    def finish(self, host: str, was: Mapping[str, str]) -> str:
        """Return the script that halts all but captures, prints counters and state, and restores the host.

        split_finish_output() separates the printed parts. If the trial has no program on the host, the script
        also deletes the trial's folder.
        """
        ended = (self.counters_body(host), self.network_body(host))
        found = (f"echo {quote(FOUND)}\n", self.read_body(host, None))
        restored = (f"echo {quote(RESTORED)}\n", self.restore_body(host, was), self.read_body(host))
        deletion = () if self.processes(host) else (DELETE_FOLDER,)
        return self.script(host, (*self._halts(host), *ended, *found, *restored, *deletion))

    def restore_body(self, host: str, was: Mapping[str, str], lasting: bool = False) -> str:
        """Return shell commands that restore the state of a host, last change first."""
        settle = self._own_step(host, "settle")
        # Even if a link does not come back, the state must be printed.
        waits = f"(\n{settle})\n" if settle else ""
        return "".join((*reversed(self.blocks(host, "restore", lasting, was=was)), waits))

    def on_loss(self, host: str, was: Mapping[str, str], lasting: str = "") -> str:
        """Return the script for a host that has lost its controller: stop all programs, restore the state.

        `lasting` is text that restores lasting settings, which take effect when the host boots again.
        """
        sweep = self._step(host, "sweep", {"campaign": self.campaign})
        return self.script(host, (sweep, self.restore_body(host, was), lasting))

    def sweep(self, host: str) -> str:
        """Return the script that ends all processes of the campaign and deletes the trial's files."""
        return self.script(host, (self._step(host, "sweep", {"campaign": self.campaign}),))

    def reboot(self, host: str) -> str:
        """Return the script that reboots a host a moment after the script itself has ended."""
        return self.script(host, (self._step(host, "reboot", {}),))

    def counters_body(self, host: str) -> str:
        """Return shell commands that print the counters of a host and of its settings."""
        return "".join((self._own_step(host, "counters"), *self.blocks(host, "counters")))

    def network_body(self, host: str) -> str:
        """Return text that prints the state of a host's network: MTU, routes, queue disciplines, filters."""
        ends = ((flow.from_host, flow.from_address) for flow in self.resolved.flows)
        other_ends = ((flow.to_host, flow.to_address) for flow in self.resolved.flows)
        network = {
            "interfaces": self.resolved.hosts[host].interfaces,
            "addresses": sorted({address for end, address in (*ends, *other_ends) if end != host}),
        }
        return self._own_step(host, "network", network)

    def owned(self, host: str) -> tuple[str, ...]:
        """Return patterns of lines that step `network` prints only because of settings of the trial."""
        return tuple(line for text in self.blocks(host, "owned") for line in text.splitlines() if line)

    def _halts(self, host: str) -> Iterator[str]:
        names = (process.name for process in self.processes(host) if process.kind != "capture")
        return (f"halt {name}\n" for name in ("sentinel", *names))

    def _step(self, host: str, name: str, values: Mapping[str, object], block: str = "script") -> str:
        return self.catalogue.recipe("step", name, self.system(host)).render(block, values)

    def _own_step(self, host: str, name: str, values: Mapping[str, object] = NO_VALUES) -> str:
        """Return the text of a step that only some systems have; empty for other systems."""
        return (
            self._step(host, name, values) if name in self.catalogue.names("step", self.system(host)) else ""
        )

    # ---- the traffic: prepare it, start it, watch it, stop it ----

    def offer(self, host: str) -> str | None:
        """Return the script that prints what programs offer to their flows' other ends, such as public keys.

        Returns None if no program of the host offers anything.
        """
        parts = [
            f"printf 'offer %s %s\\n' {quote(program.name)} \"$(\n{text})\"\n"
            for program in self.processes(host)
            if program.end and (text := self._program(host, program, f"offer_{program.end}"))
        ]
        return self.script(host, parts) if parts else None

    def arm(self, host: str, offers: Mapping[str, str] = NO_VALUES) -> str | None:
        """Return the script that starts loggers and servers, prepares clients, then prints counters.

        Returns None if there is nothing to start or print. `offers` maps programs to the output of `offer`.
        """
        programs = self.processes(host)
        recorders = [program for program in programs if program.kind != "generator"]
        clients, servers = ([one for one in programs if one.end == end] for end in ("client", "server"))
        # The state of the network is printed while programs start. Samplers report when they are ready. Other
        # programs are polled, which is slower, so they come last.
        starts = [
            *((program, "start") for program in recorders),
            *((program, "server") for program in servers),
        ]
        preparations = [
            *((program, "ready") for program in reversed(recorders)),
            *((program, "ready") for program in servers),
            *((program, "prepare") for program in clients),
        ]
        flows = (ends.flow for ends in self.flows if ends.client_host == host)
        peers = dict.fromkeys(one.to_address if one.from_host == host else one.from_address for one in flows)
        neighbours = self._step(host, "neighbours", {"peers": tuple(peers)}) if peers else ""
        started, prepared = (
            [self._program(host, program, block, offers) for program, block in blocks]
            for blocks in (starts, preparations)
        )
        parts = [neighbours, *started, self.network_body(host), *prepared, self.counters_body(host)]
        return self.script(host, parts) if any(parts) else None

    def clock(self, host: str) -> str:
        """Return the script that prints the time of a host's clock in ns since the epoch."""
        return self._step(host, "clock", {}) + "now_ns\n"

    def traffic(self, host: str, t0_ns: int, limits: keys.Thresholds = DEFAULT_LIMITS) -> str | None:
        """Return the script that starts a host's clients and watches all its programs; None without programs.

        Second 0 of the trial is t0_ns of the host's clock. The trial ends if the free disk space, a step of
        the clock or the duration of a flow is outside the limits. The script ends when it has printed an
        event: `failed NAME why`, `lost NAME why` of a logger, `disk why`, `clock why`, `gone NAME` of a
        server, `ended NAME` of a client, `idle` after the last client.
        """
        programs, stop = self.processes(host), self.resolved.stop
        if not programs:
            return None
        starts: dict[float, list[tuple[str, str]]] = {}
        for client in sorted((one for one in programs if one.end == "client"), key=lambda one: one.start_s):
            starts.setdefault(client.start_s, []).append((client.name, self._program(host, client, "client")))
        values: dict[str, object] = {
            "starts": [(t0_ns + round(at_s * 1e9), clients) for at_s, clients in starts.items()],
            "stop_ns": None,
        }
        if starts and stop is not None and stop.after_s is not None:
            values["stop_ns"] = t0_ns + round(stop.after_s * 1e9)
        bounds = {
            "least_kib": -(-limits.disk_bytes // 1024),
            "step_ns": round(limits.clock_step_s * 1e9),
        }
        launches, sentinel = self._step(host, "watch", values, "start"), self._step(host, "sentinel", bounds)
        return self.follow(host, t0_ns, launches, sentinel, limits=limits)

    def follow(self, host: str, t0_ns: int, *starts: str, limits: keys.Thresholds = DEFAULT_LIMITS) -> str:
        """Return the script that continues to watch after `traffic` or `follow` has printed an event.

        The host applies stop rules that concern only its own clients. The controller applies the other rules;
        the host reports the end of each client that such a rule waits for. The commands in `starts` run
        before the script starts to watch the programs.
        """
        flows = [ends for ends in self.flows if ends.client_host == host]
        clients = [ends.name("client") for ends in flows]
        local = [rule for rule in self.rules if {*rule.when, *rule.finish} <= {*clients}]
        elsewhere = {name for rule in self.rules if rule not in local for name in rule.when}
        values = {
            "clients": clients,
            "servers": [ends.name("server") for ends in self.flows if ends.server_host == host],
            "named": sorted(elsewhere & {*clients}),
            "loggers": [one.name for one in self.processes(host) if one.kind != "generator"],
            "due_ns": {ends.name("client"): ends.earliest_end_ns(t0_ns, limits.duration) for ends in flows},
            "rules": local,
        }
        watch = self._step(host, "watch", values, "follow")
        return self.script(host, ("listen\n", *starts, watch), self._step(host, "watch", {}))

    def order(self, word: str) -> str:
        """Return text that sends an order to a host's watch script: `stop`, NAME.halt or NAME.doubt.

        NAME is a client. NAME.halt ends the client. NAME.doubt is sent after the client's server has ended,
        and makes the client fail if the client still runs. The host's long-lived shell runs the text. The
        shell would exit if a redirection of a special built-in (POSIX) failed, so the text has no such
        redirection.
        """
        folder, pipe = quote(self.folder), quote(f"{self.folder}/events")
        file = quote(f"{self.folder}/{'order-' * (word == 'stop')}{word}")
        written = f"[ -d {folder} ] || mkdir -p {folder}; printf %s >{file}"
        return f"{written}; [ ! -p {pipe} ] || echo wake 1<>{pipe}\n"

    def stop(self, host: str, broken_off: bool = False) -> str | None:
        """Return the script that stops all programs, waits for complete files, and prints how each ended.

        If the traffic script was killed (`broken_off`), nothing waits for its clients, so this script stops
        them.
        """
        programs = self.processes(host)
        if not programs:
            return None
        halts, awaits, reports = (
            [f"{verb} {program.name}\n" for program in programs] for verb in ("halt", "await_end", "tell")
        )
        # The start times of clients are printed while the programs end.
        began = f"began {' '.join(map(quote, self.clients(host)))}\n"
        abandon = self._step(host, "abandon", {"clients": self.clients(host)}) if broken_off else ""
        drains = (self._program(host, one, "drain") for one in programs if one.kind != "generator")
        return self.script(host, (abandon, *drains, *halts, began, *awaits, *reports))

    def processes(self, host: str) -> tuple[Program, ...]:
        """Return the programs that the trial starts on a host: captures, loggers, clients, servers."""
        return tuple(self._programs(host))

    def _programs(self, host: str) -> Iterator[Program]:
        for capture in (one for one in self.resolved.captures if one.host == host):
            name, interface = f"{host}-{capture.interface}", capture.interface
            values: dict[str, object] = {"interface": interface, "snaplen_bytes": capture.snaplen_bytes}
            output = f"{name}.pcap.gz"
            yield Program(name, "capture", CAPTURE_RECIPE, output, values, interface=interface)
        # If a flow's ports are unknown, loggers are given no ports, so that they record all.
        known = all(ends.recipe.header.ports for ends in self.flows)
        ports = tuple(sorted({flow.port for flow in self.resolved.flows})) if known else ()
        for entry in (one for one in self.resolved.loggers if one.host == host):
            name = f"{host}-{entry.logger}"
            values = {"interface": entry.interface, "ports": ports}
            if entry.interval_s is not None:
                values["interval_s"] = entry.interval_s
            output = f"{name}.csv"
            yield Program(name, "logger", entry.logger, output, values, entry.parameters, entry.interface)
        yield from (self._generator(ends, "client") for ends in self.flows if ends.client_host == host)
        yield from (self._generator(ends, "server") for ends in self.flows if ends.server_host == host)

    def _generator(self, ends: FlowEnds, end: End) -> Program:
        flow, name = ends.flow, ends.name(end)
        left_s = max(1.0, round(self.resolved.deadline_s - flow.start_s, 3))
        endless = flow.duration_s is None and flow.size_bytes is None
        values: dict[str, object] = {
            "from_address": flow.from_address,
            "to_address": flow.to_address,
            "port": flow.port,
            "duration_s": left_s if endless else flow.duration_s,
            "size_bytes": flow.size_bytes,
            "cc": flow.cc,
            "dscp": flow.dscp,
        }
        if end == "client":
            values["limit_s"] = left_s
        return Program(
            name=name,
            kind="generator",
            recipe=flow.generator,
            output=f"{name}.out",
            values=values,
            parameters=flow.parameters,
            flow=flow.label,
            end=end,
            start_s=flow.start_s,
        )

    def paces(self, ends: FlowEnds) -> tuple[Pace, ...]:
        """Return the planned sending rates of a flow's ends; empty if the generator's recipe states none.

        Raises RecipeError.
        """
        return parse_paces(self._program(ends.client_host, self._generator(ends, "client"), "pace"))

    def recipe_of(self, host: str, program: Program) -> Recipe:
        """Return the recipe of a host's program."""
        kind = "generator" if program.kind == "generator" else "logger"
        return self.catalogue.recipe(kind, program.recipe, self.system(host))

    def _program(self, host: str, program: Program, block: str, offers: Mapping[str, str] = NO_VALUES) -> str:
        """Return a block of a program's recipe; empty for an optional block that the recipe does not have."""
        recipe = self.recipe_of(host, program)
        if block not in recipe.blocks and block not in BLOCKS[recipe.kind]:
            return ""
        peer = f"{program.flow}-{'server' if program.end == 'client' else 'client'}"
        values = {
            "name": program.name,
            "output": program.output,
            "limit_s": round(self.resolved.deadline_s + STOP_GRACE_S, 3),
            "addresses": sorted({a for f in self.resolved.flows for a in (f.from_address, f.to_address)}),
            "system": self.system(host),
            "offered": offers.get(peer, ""),
        }
        return recipe.render(block, {**values, **program.values, **recipe.parse_values(program.parameters)})

    def clients(self, host: str) -> tuple[str, ...]:
        """Return the names of the clients that run on a host."""
        return tuple(ends.name("client") for ends in self.flows if ends.client_host == host)


def split_finish_output(text: str) -> tuple[str, str, str]:
    """Return the parts of the output of `finish`: counters, state as found, state as restored."""
    counters, _, rest = text.partition(f"{FOUND}\n")
    found, _, restored = rest.partition(f"{RESTORED}\n")
    return counters, found, restored
