"""The way to a testbed's hosts: labs, sessions, power."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from samovar import lab
from samovar.campaign.availability.in_use import require_idle
from samovar.campaign.availability.preflight import needs_of
from samovar.cli.project import Checkout
from samovar.cli.requests import Study
from samovar.errors import LabError, TestbedError
from samovar.events import Emit, Event
from samovar.experiment import Testbed, load_testbed
from samovar.experiment.nearest import unknown
from samovar.hosts import LeaseError, Sessions, Target, machines_of
from samovar.hosts.power import ACTIONS
from samovar.plan import Plan

TAKES_POWER = ("off", "cycle")


@dataclass(frozen=True)
class Switching:
    """What `fab power` is asked: a host, on, off, cycle or status; `force` disturbs a campaign."""

    host: str
    action: str
    testbed: str = ""
    force: bool = False


class Reaching(Checkout):
    """A checkout that reaches its testbeds."""

    def lab_folder(self, testbed: str) -> Path:
        """Name the folder that a lab keeps its state in."""
        return self.root / ".lab" / testbed

    def lab_up(self, testbed: Testbed, plan: Plan | None, emit: Emit) -> lab.Access:
        """Start a testbed's lab; the plan says what its kernel must offer."""
        self._require_devices(testbed)
        needs = needs_of(plan, self.catalogue) if plan else lab_default_needs()
        return lab.up(testbed, self.lab_folder(testbed.name), lab.Needs(*needs), emit, self.user_mode)

    @property
    def user_mode(self) -> lab.UserMode:
        """The user-mode kernel that labs boot."""
        uml = self.config.lab.uml
        return lab.UserMode(uml.program, Path(uml.modules)).below(self.root)

    @contextmanager
    def opened(self, study: Study, emit: Emit) -> Iterator[Sessions]:
        """Connect to every host of a study's testbed; a lab that this has to start is stopped again."""
        with self._started(study, emit) as sessions, sessions:
            yield sessions

    @contextmanager
    def _started(self, study: Study, emit: Emit) -> Iterator[Sessions]:
        """Make the sessions of a study's testbed, not yet open; a lab that this starts is stopped again."""
        testbed, folder = study.testbed, self.lab_folder(study.testbed.name)
        starts = testbed.lab is not None and lab.read_access(folder) is None
        try:
            if starts:
                self.lab_up(testbed, study.plan, emit)
            with closing(self.sessions(testbed)) as sessions:
                yield sessions
        finally:
            if starts:
                self._stop_unless_used(testbed, emit)

    def _stop_unless_used(self, testbed: Testbed, emit: Emit) -> None:
        """Stop a lab that was started for one command, unless another campaign has come to work there."""
        try:
            self.lab_down(testbed, emit)
        except LeaseError as error:
            emit(Event("warning", {"text": f"lab {testbed.name} is left running: {error}"}))

    def lab_down(self, testbed: Testbed, emit: Emit, force: bool = False) -> bool:
        """Stop a testbed's lab; return whether it ran. Raises TestbedError while a campaign is at work there.

        With `force` it is stopped all the same, and a record is kept of whom that has disturbed.
        """
        self._require_idle(testbed, f"fab lab.down --testbed {testbed.name}", emit, force)
        return lab.down(self.lab_folder(testbed.name), emit)

    def _require_idle(self, testbed: Testbed, command: str, emit: Emit, force: bool) -> None:
        if testbed.lab is not None and lab.read_access(self.lab_folder(testbed.name)) is None:
            return
        with closing(self.sessions(testbed)) as sessions:
            for host, lease in require_idle(sessions, command, self.results, force).items():
                emit(
                    Event(
                        "warning", {"text": f"{host}: campaign {lease.values.get('campaign')} is disturbed"}
                    )
                )

    def sessions(self, testbed: Testbed) -> Sessions:
        """Make the sessions of a testbed's hosts, not yet open. Raises LabError for a lab that is down."""
        if testbed.lab is None:
            return Sessions(self._targets(testbed, None))
        self._require_devices(testbed)
        access = lab.read_access(self.lab_folder(testbed.name))
        if access is None:
            raise LabError(
                f"lab {testbed.name} is not running; `fab lab.up --testbed {testbed.name}` starts it"
            )
        return Sessions(self._targets(testbed, access), lab.dial(access))

    def _require_devices(self, testbed: Testbed) -> None:
        """Refuse a lab that has links which no lab can be, naming the testbeds whose lab runs."""
        if lab.lacking(testbed):
            lab.require_devices(testbed, [load_testbed(path) for path in self.testbeds()])

    def _targets(self, testbed: Testbed, access: lab.Access | None) -> Iterator[Target]:
        for name, host in testbed.hosts.items():
            ssh = testbed.ssh_of(name)
            key, known_hosts = (access.key, access.known_hosts) if access else (ssh.key, ssh.known_hosts)
            yield Target(
                host=name,
                address=host.address,
                port=ssh.port,
                user=ssh.user,
                key=Path(key).expanduser() if key else None,
                known_hosts=Path(known_hosts).expanduser() if known_hosts else None,
                connect_timeout_s=self.config.ssh.connect_timeout_s,
                keepalive_s=self.config.ssh.keepalive_s,
                hint="is the lab up? `fab lab.up`" if access else "",
            )

    def power(self, asked: Switching, emit: Emit) -> str:
        """Switch a host of a testbed, or ask whether it is on; raises DefinitionError or TestbedError.

        What takes power from a host is refused while a campaign is at work on its testbed, unless by force.
        """
        bed = load_testbed(self.testbed_path(asked.testbed))
        machines, host, action = machines_of(bed), asked.host, asked.action
        if host not in machines:
            raise TestbedError(unknown("host", host, machines))
        if action not in ACTIONS:
            raise TestbedError(unknown("action of power", action, ACTIONS))
        if action in TAKES_POWER and machines[host].power is not None:
            self._require_idle(bed, f"fab power {host} {action} --testbed {bed.name}", emit, asked.force)
        return machines[host].switch(action)


def lab_default_needs() -> tuple[frozenset[str], frozenset[str]]:
    """Name what a lab that is started for no experiment in particular should offer."""
    return frozenset({"cdg"}), frozenset({"netem"})
