"""Signs of life between a controller and a host: each side learns in a bounded time that the other is gone.

The controller orders the host's shell every `interval_s` to note that it lives; see samovar_listen in
shell.sh. With the same step it asks the SSH server for an answer, and gives the connection up when there is
none; TCP alone would take a quarter of an hour to find a link that was cut.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from samovar.hosts.remote_shell import RemoteShell
from samovar.hosts.shell_protocol import ALIVE_TEXT
from samovar.hosts.ssh import SshConnection

UNANSWERED = 4
"""For so many intervals a host may leave a question open before its connection is given up."""


class Heartbeat:
    """Beats for one connection until it is stopped or the connection is gone."""

    def __init__(self, link: SshConnection, shell: RemoteShell, interval_s: float) -> None:
        self._link, self._shell, self._interval_s = link, shell, interval_s
        self._stopped = threading.Event()
        threading.Thread(target=self._beat, name="pulse", daemon=True).start()

    def stop(self) -> None:
        """Beat no more; returns at once."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(self._interval_s):
            with suppress(OSError, EOFError):  # a lost connection is for the thread that uses it to find
                self._shell.order(ALIVE_TEXT)
            if not self._answered():
                return

    def _answered(self) -> bool:
        patience = threading.Timer(UNANSWERED * self._interval_s, self._link.close)
        patience.daemon = True
        patience.start()
        try:
            return self._link.answers()
        finally:
            patience.cancel()
