"""The scripts of a trial: one text for each host and phase, rendered from recipes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from samovar.plan import Trial
from samovar.recipes.catalogue import Catalogue
from samovar.recipes.counter_scripts import FOUND, RESTORED, counting_text
from samovar.recipes.flow_ends import ENDS, End, FlowEnds, StopRule, stop_rules, trial_flows
from samovar.recipes.generator_watch import NO_LIMITS, AbortLimits, order_text, starts_text, watch_text
from samovar.recipes.processes import Program as Program
from samovar.recipes.processes import of_capture, of_generator, of_logger
from samovar.recipes.quoting import quote
from samovar.recipes.recipe import BLOCKS, Recipe
from samovar.recipes.setting_recipes import Setting, host_settings
from samovar.recipes.typed_values import typed

NONE: Mapping[str, str] = {}
GONE = 'cd / && rm -rf -- "$dir"\n'
"""Removes the trial's folder, with all that is in it."""
BODY = "# ---- the step itself ----\n"
"""Stands in every script between the functions that all of them share and what this one does."""
STOP_GRACE_S = 20.0
"""How much longer than the traffic a logger may live by itself, should nobody be left to end it."""


class TrialScripts:
    """Every script of one trial; a pure function of the trial, the catalogue and the campaign's name."""

    def __init__(self, trial: Trial, catalogue: Catalogue, campaign: str) -> None:
        self.trial, self.catalogue, self.campaign = trial, catalogue, campaign
        self.resolved = trial.resolved

    @property
    def folder(self) -> str:
        """Name the trial's folder on every host."""
        return f"/tmp/samovar/{self.campaign}/{self.trial.id}"

    @cached_property
    def flows(self) -> tuple[FlowEnds, ...]:
        """Give each flow with its recipe and its ends."""
        return trial_flows(self.resolved, self.catalogue)

    @cached_property
    def rules(self) -> tuple[StopRule, ...]:
        """List what ends with something else."""
        return stop_rules(self.resolved, self.flows)

    def settings(self, host: str, lasting: bool | None = None) -> tuple[Setting, ...]:
        """List the settings of a host: all, only those that last over trials, or only the others."""
        return host_settings(host, self.resolved, self.catalogue, lasting)

    def read(self, host: str, lasting: bool = False) -> str:
        """Print the state that the trial, or its plot, will change, as key=value lines."""
        return self.script(host, (self.read_body(host, lasting),))

    def read_body(self, host: str, lasting: bool | None = False) -> str:
        """Give the text of `read` that is the same for trials that change the same things."""
        settings = self.settings(host, lasting)
        return self._values(host, settings) + "".join(self._setting(host, one, "read") for one in settings)

    def _values(self, host: str, settings: Iterable[Setting]) -> str:
        """Read at once what recipes name in a block `files`: a program for each takes longer."""
        named = [s for s in settings if "files" in self._recipe(host, s).blocks]
        files = dict.fromkeys(word for one in named for word in self._setting(host, one, "files").split())
        return f"kernel_values {' '.join(files)}\n" if files else ""

    def set(self, host: str, was: Mapping[str, str], lasting: bool = False) -> str:
        """Change the state from what `read` printed, then print it as `read` does.

        What lasts over trials is changed by itself, and only read back otherwise.
        """
        changes = [self._setting(host, s, "set", {"was": was}) for s in self.settings(host, lasting)]
        return self.script(host, (*changes, self.read_body(host, lasting or None)))

    def wanted(self, host: str, lasting: bool | None = None) -> tuple[str, ...]:
        """List what `set` must print: `key=value`, or `key*=text that the value holds`."""
        text = "\n".join(self._setting(host, s, "wanted") for s in self.settings(host, lasting))
        return tuple(line.strip() for line in text.splitlines() if line.strip())

    def restore(self, host: str, was: Mapping[str, str]) -> str:
        """Put back the state that `read` printed, last change first, then print it again.

        Samplers and servers end first; captures go on, for the last packets of the traffic.
        """
        return self.script(host, (*self._halts(host), self.restore_body(host, was), self.read_body(host)))

    def restore_and_delete(self, host: str, was: Mapping[str, str]) -> str:
        """Restore as `restore` does after a trial that was broken off, whose folder goes too."""
        return self.script(
            host, (*self._halts(host), self.restore_body(host, was), self.read_body(host), GONE)
        )

    def _halts(self, host: str) -> Iterator[str]:
        names = (process.name for process in self.processes(host) if process.kind != "capture")
        return (f"halt {name}\n" for name in ("sentinel", *names))

    def _counting(self, host: str) -> str:
        return counting_text(self.catalogue, self._os(host), self.settings(host))

    def finish(self, host: str, was: Mapping[str, str]) -> str:
        """Print counters and state as the traffic left them, then restore; see split_finish_output.

        Where nothing was recorded nothing will be collected, and the trial's folder goes at once.
        """
        found = (self._counting(host), f"echo {quote(FOUND)}\n", self.read_body(host, None))
        restored = (f"echo {quote(RESTORED)}\n", self.restore_body(host, was), self.read_body(host))
        gone = () if self.processes(host) else (GONE,)
        return self.script(host, (*self._halts(host), *found, *restored, *gone))

    def restore_body(self, host: str, was: Mapping[str, str], lasting: bool = False) -> str:
        """Give the text that puts back the state that `read` printed, last change first."""
        settings = reversed(self.settings(host, lasting))
        return "".join(self._setting(host, s, "restore", {"was": was}) for s in settings)

    def restore_lasting(self, host: str, was: Mapping[str, str]) -> str:
        """Put back what lasts over trials as `read` printed it, then print it again."""
        return self.script(host, (self.restore_body(host, was, True), self.read_body(host, True)))

    def on_loss(self, host: str, was: Mapping[str, str], lasting: str = "") -> str:
        """End what runs and restore the state: what a host does when its controller is gone.

        `lasting` puts back what lasts over trials; that is in force once the host is booted again.
        """
        sweep = self._step(host, "sweep", {"campaign": self.campaign})
        return self.script(host, (sweep, self.restore_body(host, was), lasting))

    def reboot(self, host: str) -> str:
        """Boot a host anew, a moment after the script has ended."""
        return self.script(host, (self._step(host, "reboot", {}),))

    def sweep(self, host: str) -> str:
        """End every process of this campaign on a host, and remove what the trial has written there."""
        return self.script(host, (self._step(host, "sweep", {"campaign": self.campaign}),))

    def offer(self, host: str) -> str | None:
        """Print what one end of a flow has to tell the other before it starts; None when nothing."""
        parts = [
            f"printf 'offer %s %s\\n' {quote(ends.name(end))} \"$(\n{text})\"\n"
            for ends, end in self._at(host)
            if (text := self._flow(host, ends, end, f"offer_{end}", ""))
        ]
        return self.script(host, parts) if parts else None

    def arm(self, host: str, offers: Mapping[str, str] = NONE) -> str | None:
        """Start loggers and servers, prepare clients; print what is counted so far once all are ready.

        None where there is nothing to do. `offers` holds what `offer` printed, by the program's name.
        """
        starts = [*self._loggers(host, "start"), *self._flows(host, "server", "server", offers)]
        # Samplers tell when they are ready, the others are asked again and again, and are slower to be asked.
        loggers = [*self._loggers(host, "ready")]
        readies = [*reversed(loggers), *self._flows(host, "server", "ready", offers)]
        prepares = self._flows(host, "client", "prepare", offers)
        parts = [self._neighbours(host), *starts, *readies, *prepares, self._counting(host)]
        return self.script(host, parts) if any(parts) else None

    def _neighbours(self, host: str) -> str:
        peers = dict.fromkeys(ends.peer_address for ends in self._ends(host, "client"))
        return self._step(host, "neighbours", {"peers": tuple(peers)}) if peers else ""

    def clock(self, host: str) -> str:
        """Print the time of a host's clock, in ns since the epoch."""
        return self._step(host, "clock", {}) + "now_ns\n"

    def traffic(self, host: str, t0_ns: int, limits: AbortLimits = NO_LIMITS) -> str | None:
        """Start the clients of a host, second 0 being t0_ns of its clock, and watch; None when nothing runs.

        Prints what the controller must know, and ends then: `failed NAME why`, `lost NAME why` of a logger,
        `disk why`, `clock why`, `gone NAME` of a server, `ended NAME` of a client, `idle` after the last.
        """
        if not self.processes(host):
            return None
        launches = [(ends.flow.start_s, self._launch(host, ends)) for ends in self._ends(host, "client")]
        starts = starts_text(t0_ns, launches, self.resolved.stop)
        sentinel = self._step(host, "sentinel", limits.as_values())
        return self._watching(host, ("listen\n", starts, sentinel, self._watch(host, t0_ns)))

    def follow(self, host: str, t0_ns: int) -> str:
        """Go on watching after `traffic` or `follow` has told something."""
        return self._watching(host, ("listen\n", self._watch(host, t0_ns)))

    def _watch(self, host: str, t0_ns: int) -> str:
        loggers = [process.name for process in self.processes(host) if process.kind != "generator"]
        return watch_text(self.flows, self.rules, host, t0_ns, loggers)

    def order(self, word: str) -> str:
        """Give the watch of any host an order: `stop`, or `NAME.halt` or `NAME.doubt` of a client."""
        return order_text(self.folder, word)

    def stop(self, host: str, broken_off: bool = False) -> str | None:
        """Let captures catch up, end what runs, wait until files are whole, tell how each ended.

        Where the traffic was `broken_off`, nobody is left who waits for its clients and says how they ended.
        """
        names = [process.name for process in self.processes(host)]
        if not names:
            return None
        lines = [f"{verb} {name}\n" for verb in ("halt", "await_end", "tell") for name in names]
        began = f"began {' '.join(map(quote, self.clients(host)))}\n"
        abandon = self._step(host, "abandon", {"clients": self.clients(host)}) if broken_off else ""
        return self.script(host, (abandon, *self._loggers(host, "drain"), *lines, began))

    def processes(self, host: str) -> tuple[Program, ...]:
        """List what the trial starts on a host."""
        return tuple(self._processes(host))

    def has_flows(self, host: str) -> bool:
        """Tell whether a host is an end of any flow."""
        return any(ends.host(end) == host for ends in self.flows for end in ENDS)

    def end_needs(self, host: str) -> Iterator[str]:
        """Name the programs that only one end of a generator needs, for the ends at a host."""
        for ends, end in self._at(host):
            header = ends.recipe.header
            yield from header.client_needs if end == "client" else header.server_needs

    def clients(self, host: str) -> tuple[str, ...]:
        """Name the clients that run on a host."""
        return tuple(ends.name("client") for ends in self._ends(host, "client"))

    def _processes(self, host: str) -> Iterator[Program]:
        yield from (of_capture(c) for c in self.resolved.captures if c.host == host)
        yield from (of_logger(entry) for entry in self.resolved.loggers if entry.host == host)
        yield from (of_generator(ends, end) for ends, end in self._at(host))

    def _at(self, host: str) -> Iterator[tuple[FlowEnds, End]]:
        """Give each end of a flow that runs on a host, the clients first."""
        yield from ((ends, "client") for ends in self._ends(host, "client"))
        yield from ((ends, "server") for ends in self._ends(host, "server"))

    @property
    def _ports(self) -> tuple[int, ...]:
        return tuple(sorted({flow.port for flow in self.resolved.flows}))

    def _ends(self, host: str, end: End) -> Iterator[FlowEnds]:
        return (ends for ends in self.flows if ends.host(end) == host)

    def _loggers(self, host: str, block: str) -> Iterator[str]:
        for capture in self.resolved.captures:
            if capture.host == host:
                values = {"interface": capture.interface, "snaplen_bytes": capture.snaplen_bytes}
                yield self._process(host, of_capture(capture), block, values)
        for entry in self.resolved.loggers:
            if entry.host == host:
                given = {"interval_s": entry.interval_s} if entry.interval_s is not None else {}
                values = {"interface": entry.interface, "ports": self._ports, **given}
                yield self._process(host, of_logger(entry), block, values, entry.parameters)

    def _flows(self, host: str, end: End, block: str, offers: Mapping[str, str]) -> Iterator[str]:
        for ends in self._ends(host, end):
            other = ends.name("server" if end == "client" else "client")
            yield self._flow(host, ends, end, block, offers.get(other, ""))

    def _flow(self, host: str, ends: FlowEnds, end: End, block: str, offered: str) -> str:
        flow = ends.flow
        left_s = max(1.0, round(self.resolved.deadline_s - flow.start_s, 3))
        endless = flow.duration_s is None and flow.size_bytes is None
        values = {
            "from_address": flow.from_address,
            "to_address": flow.to_address,
            "port": flow.port,
            "duration_s": left_s if endless else flow.duration_s,
            "size_bytes": flow.size_bytes,
            "cc": flow.cc,
            "dscp": flow.dscp,
            "system": self._os(host),
            "offered": offered,
            **({"limit_s": left_s} if block == "client" else {}),
        }
        return self._process(host, of_generator(ends, end), block, values, flow.parameters)

    def _launch(self, host: str, ends: FlowEnds) -> str:
        name = quote(ends.name("client"))
        return f"if [ ! -e {name}.finished ]; then\n{self._flow(host, ends, 'client', 'client', '')}fi\n"

    def _process(
        self,
        host: str,
        process: Program,
        block: str,
        values: Mapping[str, object],
        parameters: Mapping[str, str] = NONE,
    ) -> str:
        kind = "generator" if process.kind == "generator" else "logger"
        recipe = self.catalogue.recipe(kind, process.recipe, self._os(host))
        if block not in recipe.blocks and block not in BLOCKS[recipe.kind]:
            return ""  # an optional block that this recipe has no need of
        grace_s = 0.0 if block == "client" else STOP_GRACE_S
        addresses = sorted({a for f in self.resolved.flows for a in (f.from_address, f.to_address)})
        common = {
            "name": process.name,
            "output": process.output,
            "limit_s": round(self.resolved.deadline_s + grace_s, 3),
            "addresses": addresses,
        }
        return recipe.render(block, {**common, **values, **typed(recipe, parameters)})

    def _setting(
        self, host: str, setting: Setting, block: str, more: Mapping[str, object] | None = None
    ) -> str:
        return self._recipe(host, setting).render(block, {**setting.values, **(more or {})})

    def _recipe(self, host: str, setting: Setting) -> Recipe:
        return self.catalogue.recipe("setting", setting.recipe, self._os(host))

    def _step(self, host: str, name: str, values: Mapping[str, object]) -> str:
        return self.catalogue.recipe("step", name, self._os(host)).render("script", values)

    def _watching(self, host: str, parts: Iterable[str]) -> str:
        return self.script(host, parts, self._step(host, "watch", {}))

    def script(self, host: str, parts: Iterable[str], more: str = "") -> str:
        """Put texts behind the functions that all of them share, as a script for a host."""
        prelude = self._step(host, "prelude", {"folder": self.folder, "campaign": self.campaign})
        shared = self._step(host, "listening", {}) + self._step(host, "clock", {})
        return prelude + shared + more + BODY + "".join(parts) + "exit 0\n"

    def _os(self, host: str) -> str:
        return self.resolved.hosts[host].system
