"""What a trial is made of: steps on its hosts, side by side, in phases that are timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from samovar.campaign.context import CampaignContext
from samovar.events import Event
from samovar.hosts import ScriptResult


class Steps:
    """Runs the steps of one attempt at a trial; `phases` grows by the name and the seconds of each phase."""

    def __init__(
        self, context: CampaignContext, trial: str, hosts: tuple[str, ...], phases: list[tuple[str, float]]
    ) -> None:
        self._context, self._trial, self._hosts, self._phases = context, trial, hosts, phases

    def on_hosts(
        self,
        step: str,
        script: Callable[[str], str | None],
        deadline_s: float | None = None,
        hosts: Iterable[str] | None = None,
    ) -> dict[str, ScriptResult]:
        """Run a script on each host, all at a time, but where there is None for a host.

        Raises TestbedError.
        """
        texts = {host: script(host) for host in (self._hosts if hosts is None else hosts)}
        wanted = {host: text for host, text in texts.items() if text is not None}
        limit_s = deadline_s or self._context.policy.step_timeout_s
        return self._context.sessions.map(
            lambda session: session.run(wanted[session.host], step=step, deadline_s=limit_s), wanted
        )

    @contextmanager
    def phase(self, name: str, lead: str = "", lead_s: float = 0.0) -> Iterator[None]:
        """Time a phase; its first seconds may be a phase of their own.

        Raises KeyboardInterrupt where the campaign is to stop, but for the phase that clears up.
        """
        if self._context.interrupt.requested and name != "clear":
            raise KeyboardInterrupt
        self._context.emit(Event("phase", {"id": self._trial, "phase": name}))
        started = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - started
            first_s = min(lead_s, seconds)
            if lead:
                self._took(lead, first_s)
            self._took(name, seconds - first_s)

    def _took(self, phase: str, seconds: float) -> None:
        self._phases.append((phase, round(seconds, 4)))
        self._context.note("phase", id=self._trial, phase=phase, seconds=round(seconds, 4))
