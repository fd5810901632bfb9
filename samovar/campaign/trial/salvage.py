"""What a trial has left so far when the user breaks it off: half a trial, whose traces may tell why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from samovar.campaign.collection import Expected, collect
from samovar.errors import TestbedError
from samovar.events import Emit, Event
from samovar.hosts import Session, Sessions
from samovar.recipes import TrialScripts, quote

STOP_DEADLINE_S = 20.0
COLLECT_DEADLINE_S = 60.0
"""Who breaks off a trial wants it to end: what is too large to be here by then stays there and is removed."""

Entry = Mapping[str, object]


class Salvage:
    """Brings what a trial has left on its hosts, in part or whole, into its folder here."""

    def __init__(self, scripts: TrialScripts, sessions: Sessions, emit: Emit) -> None:
        self._scripts, self._sessions, self._emit = scripts, sessions, emit

    def run(self, expected: Mapping[str, Sequence[Expected]], local: Path) -> list[Entry]:
        """End what still writes, then fetch what is there; return the entries for the manifest.

        A host that fails in this has its say in a warning, and nothing else comes of it.
        """
        brought: list[Entry] = []

        def bring(session: Session) -> None:
            brought.extend(self._of(session, expected[session.host], local))

        try:
            self._sessions.map(bring, [host for host, files in expected.items() if files])
        except TestbedError as error:
            self._emit(Event("warning", {"text": f"not all of the trial could be collected: {error}"}))
        return brought

    def _of(self, session: Session, expected: Sequence[Expected], local: Path) -> list[Entry]:
        there = self._names(session)
        if there.isdisjoint(name for file in expected for name in (file.remote, file.packed.remote)):
            return []
        script = self._scripts.stop(session.host, broken_off=True)
        if script:
            session.run(script, step="stop", deadline_s=STOP_DEADLINE_S, check=False)
        there = self._names(session)
        files = [file for file in expected if there & {file.remote, file.packed.remote}]
        return collect(session, self._scripts.folder, files, local, deadline_s=COLLECT_DEADLINE_S)

    def _names(self, session: Session) -> set[str]:
        script = f"cd {quote(self._scripts.folder)} 2>/dev/null || exit 0; ls\n"
        return set(session.run(script, step="look", deadline_s=STOP_DEADLINE_S).text.split())
