"""The scripts of a trial: one text for each host and phase, rendered from recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from samovar.command.catalogue import Catalogue
from samovar.command.recipe import BLOCKS
from samovar.command.settings import Setting, settings_of, typed
from samovar.plan import CapturePlan, FlowPlan, LoggerPlan, Trial

NONE: Mapping[str, str] = {}
BODY = "# ---- the step itself ----\n"
"""Stands in every script between the functions that all of them share and what this one does."""
STOP_GRACE_S = 20.0
"""How much longer than the traffic a logger may live by itself, should nobody be left to end it."""


@dataclass(frozen=True)
class Process:
    """One program that a trial starts on a host, and the file it leaves.

    What grows fast is compressed while it is written (.gz), the rest when it is collected.
    """

    name: str
    kind: Literal["capture", "logger", "generator"]
    recipe: str
    output: str
    interface: str | None = None
    flow: str | None = None


class TrialScripts:
    """Every script of one trial; a pure function of the trial, the catalogue and the campaign's name."""

    def __init__(self, trial: Trial, catalogue: Catalogue, campaign: str) -> None:
        self.trial, self.catalogue, self.campaign = trial, catalogue, campaign
        self.resolved = trial.resolved

    @property
    def folder(self) -> str:
        """Name the trial's folder on every host."""
        return f"/tmp/samovar/{self.campaign}/{self.trial.id}"

    def settings(self, host: str) -> tuple[Setting, ...]:
        """List the settings of a host."""
        return settings_of(host, self.resolved, self.catalogue)

    def read(self, host: str) -> str:
        """Print the state that the trial will change, as key=value lines."""
        return self._script(host, (self.reading(host),))

    def reading(self, host: str) -> str:
        """Give the text of `read` that is the same for trials that change the same things."""
        return "".join(self._setting(host, setting, "read") for setting in self.settings(host))

    def set(self, host: str, was: Mapping[str, str]) -> str:
        """Change the state from what `read` printed, then print it as `read` does."""
        changes = [self._setting(host, s, "set", {"was": was}) for s in self.settings(host)]
        return self._script(host, (*changes, self.reading(host)))

    def wanted(self, host: str) -> tuple[str, ...]:
        """List what `set` must print: `key=value`, or `key*=text that the value holds`."""
        text = "\n".join(self._setting(host, s, "wanted") for s in self.settings(host))
        return tuple(line.strip() for line in text.splitlines() if line.strip())

    def restore(self, host: str, was: Mapping[str, str]) -> str:
        """Put back the state that `read` printed, last change first, then print it again.

        Samplers and servers are told to end first: they would only compete with what follows. Captures go
        on, so that the last packets of the traffic still reach them.
        """
        halts = (f"halt {process.name}\n" for process in self.processes(host) if process.kind != "capture")
        changes = [self._setting(host, s, "restore", {"was": was}) for s in reversed(self.settings(host))]
        return self._script(host, (*halts, *changes, self.reading(host)))

    def on_loss(self, host: str, was: Mapping[str, str]) -> str:
        """End what runs and restore the state: what a host does when its controller is gone."""
        return self.sweep(host) + self.restore(host, was)

    def sweep(self, host: str) -> str:
        """End every process of this campaign on a host, and remove what the trial has written there."""
        return self._script(host, (self._step(host, "sweep", {"campaign": self.campaign}),))

    def arm(self, host: str) -> str | None:
        """Start loggers and servers, and return when each says that it is ready; None when there are none."""
        starts = [*self._loggers(host, "start"), *self._flows(host, "server")]
        readies = [*self._loggers(host, "ready"), *self._flows(host, "ready")]
        return self._script(host, (*starts, *readies)) if starts else None

    def traffic(self, host: str) -> str | None:
        """Start the clients of a host at their instants and wait for them; None when it sends nothing."""
        flows = [flow for flow in self.resolved.flows if flow.from_host == host]
        if not flows:
            return None
        starts = (self._delayed(flow.start_s, self._flow(host, flow, "client")) for flow in flows)
        tells = (f"tell {self.client(flow).name}\n" for flow in flows)
        return self._script(host, (*starts, "wait\n", *tells))

    def stop(self, host: str) -> str | None:
        """Let captures catch up, end what runs, wait until files are whole, tell how each ended."""
        names = [process.name for process in self.processes(host)]
        if not names:
            return None
        lines = [f"{verb} {name}\n" for verb in ("halt", "await_end", "tell") for name in names]
        return self._script(host, (*self._loggers(host, "drain"), *lines))

    def processes(self, host: str) -> tuple[Process, ...]:
        """List what the trial starts on a host."""
        return tuple(self._processes(host))

    def client(self, flow: FlowPlan) -> Process:
        """Describe the sending end of a flow."""
        return _end(flow, "client")

    def _processes(self, host: str) -> Iterator[Process]:
        yield from (_capture(c) for c in self.resolved.captures if c.host == host)
        yield from (_logger(entry) for entry in self.resolved.loggers if entry.host == host)
        yield from (_end(flow, "client") for flow in self.resolved.flows if flow.from_host == host)
        yield from (_end(flow, "server") for flow in self.resolved.flows if flow.to_host == host)

    def _loggers(self, host: str, block: str) -> Iterator[str]:
        for capture in self.resolved.captures:
            if capture.host == host:
                values = {"interface": capture.interface, "snaplen_bytes": capture.snaplen_bytes}
                yield self._process(host, _capture(capture), block, values)
        for entry in self.resolved.loggers:
            if entry.host == host:
                values = {"interface": entry.interface, "interval_s": entry.interval_s}
                yield self._process(host, _logger(entry), block, values, entry.parameters)

    def _flows(self, host: str, block: str) -> Iterator[str]:
        for flow in self.resolved.flows:
            if flow.to_host == host:
                yield self._flow(host, flow, block)

    def _flow(self, host: str, flow: FlowPlan, block: str) -> str:
        end = _end(flow, "client" if block == "client" else "server")
        values = {
            "from_address": flow.from_address,
            "to_address": flow.to_address,
            "port": flow.port,
            "duration_s": flow.duration_s,
            "size_bytes": flow.size_bytes,
        }
        return self._process(host, end, block, values, flow.parameters)

    def _process(
        self,
        host: str,
        process: Process,
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

    def _delayed(self, start_s: float, launch: str) -> str:
        return f"( sleep {start_s:.6f}\n{launch}wait ) &\n" if start_s > 0 else launch

    def _setting(
        self, host: str, setting: Setting, block: str, more: Mapping[str, object] | None = None
    ) -> str:
        recipe = self.catalogue.recipe("setting", setting.recipe, self._os(host))
        return recipe.render(block, {**setting.values, **(more or {})})

    def _step(self, host: str, name: str, values: Mapping[str, object]) -> str:
        return self.catalogue.recipe("step", name, self._os(host)).render("script", values)

    def _script(self, host: str, parts: Iterator[str] | tuple[str, ...] | list[str]) -> str:
        prelude = self._step(host, "prelude", {"folder": self.folder, "campaign": self.campaign})
        return prelude + self._step(host, "listening", {}) + BODY + "".join(parts) + "exit 0\n"

    def _os(self, host: str) -> str:
        return self.resolved.hosts[host].os


def _capture(capture: CapturePlan) -> Process:
    name = f"{capture.host}-{capture.interface}"
    return Process(name, "capture", "tcpdump", f"{name}.pcap.gz", interface=capture.interface)


def _logger(entry: LoggerPlan) -> Process:
    name = f"{entry.host}-{entry.logger}"
    return Process(name, "logger", entry.logger, f"{name}.csv", interface=entry.interface)


def _end(flow: FlowPlan, end: Literal["client", "server"]) -> Process:
    name = f"{flow.label}-{end}"
    return Process(name, "generator", flow.generator, f"{name}.out", flow=flow.label)
