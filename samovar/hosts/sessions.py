"""Keep sessions with all hosts of a testbed, and run scripts on the hosts in parallel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

from samovar.errors import TestbedError
from samovar.hosts.script_result import ScriptResult
from samovar.hosts.session import Session
from samovar.hosts.target import Dialer, SshTarget

_Result = TypeVar("_Result")


class HostsError(TestbedError):
    """The errors of several hosts, by host, in one exception."""

    def __init__(self, errors: Mapping[str, TestbedError]) -> None:
        self._errors = dict(errors)
        super().__init__("\n".join(str(error) for error in self._errors.values()))

    @property
    def by_host(self) -> Mapping[str, TestbedError]:
        """The error of each host."""
        return self._errors


class Sessions:
    """One session for each host of a testbed. Methods for all hosts work on the hosts in parallel."""

    def __init__(self, targets: Iterable[SshTarget], dialer: Dialer | None = None) -> None:
        self._sessions = {target.host: Session(target, dialer) for target in targets}
        self._threads = ThreadPoolExecutor(max(1, len(self._sessions)), thread_name_prefix="host")

    def __enter__(self) -> Sessions:
        """Connect to every host. If one connection fails, close all connections and raise the error."""
        try:
            self.map(Session.open)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getitem__(self, host: str) -> Session:
        """Return the session of a host. Raises TestbedError for an unknown name."""
        if host not in self._sessions:
            raise TestbedError(f"{host}: unknown host; known: {', '.join(self._sessions)}")
        return self._sessions[host]

    def __iter__(self) -> Iterator[Session]:
        return iter(self._sessions.values())

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts in the order of the testbed file."""
        return tuple(self._sessions)

    def map(
        self, function: Callable[[Session], _Result], hosts: Iterable[str] | None = None
    ) -> dict[str, _Result]:
        """Call a function with the session of each host in parallel; return the results by host.

        `hosts` are the hosts to use; None means all. Waits for all calls. If one call raises TestbedError,
        this error is raised; if several calls do, HostsError is raised. Other exceptions are raised
        unchanged.
        """
        names = self.hosts if hosts is None else tuple(hosts)
        futures = {name: self._threads.submit(function, self[name]) for name in names}
        try:
            wait(futures.values())
        except BaseException:  # Ctrl-C: cancel the calls that have not begun; interrupt() ends the others
            for future in futures.values():
                future.cancel()
            raise
        errors: dict[str, TestbedError] = {}
        for name, future in futures.items():
            try:
                future.result()
            except TestbedError as error:
                error.host, errors[name] = name, error
        raise_host_errors(errors)
        return {name: future.result() for name, future in futures.items()}

    def run(self, scripts: Mapping[str, str], step: str, deadline_s: float) -> dict[str, ScriptResult]:
        """Run the script of each host in parallel; see Session.run. Raises errors as map() does."""
        return self.map(lambda one: one.run(scripts[one.host], step=step, deadline_s=deadline_s), scripts)

    def interrupt(self) -> None:
        """End the scripts and transfers of other threads on all hosts. Raises errors as map() does."""
        errors: dict[str, TestbedError] = {}
        for session in self:  # not through map(): its threads are busy with the scripts that are to end
            try:
                session.interrupt()
            except TestbedError as error:
                errors[session.host] = error
        raise_host_errors(errors)

    def abandon(self, host: str) -> None:
        """Disconnect from a host so that it runs its stored clean-up script; see Session.abandon."""
        session = self._sessions.pop(host, None)
        if session:
            session.abandon()

    def close(self) -> None:
        """Disconnect from every host. The sessions can be opened again later."""
        self.map(Session.close)


def raise_host_errors(errors: Mapping[str, TestbedError]) -> None:
    """Raise a single error as it is, and several errors as one HostsError; without errors, do nothing."""
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise HostsError(errors)
