"""Connections to the hosts of a testbed: SSH sessions, the lab that runs the hosts, and power switches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from samovar import lab
from samovar.campaign.availability import needs_of, require_idle
from samovar.cli.project import PlannedExperiment, Project
from samovar.errors import LabError, TestbedError
from samovar.events import Emit, Event
from samovar.experiment import Testbed, load_testbed, unknown
from samovar.hosts import POWER_ACTIONS, LeaseError, Sessions, SshTarget, machines_of
from samovar.plan import Plan

POWER_LOSS = ("off", "cycle")
DEFAULT_NEEDS = lab.KernelNeeds(frozenset({"cdg"}), frozenset({"netem"}))
"""Congestion controls and kernel features of a lab that is started for no particular experiment."""


class Connections:
    """Access to the testbeds of a project."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def lab_folder(self, testbed: str) -> Path:
        """Return the folder in which a lab keeps its state."""
        return self._project.root / ".lab" / testbed

    @property
    def user_mode(self) -> lab.UserModeConfig:
        """The user-mode kernel that labs boot."""
        uml, root = self._project.config.lab.uml, self._project.root
        program = str(root / Path(uml.program).expanduser()) if "/" in uml.program else uml.program
        return lab.UserModeConfig(program, root / Path(uml.modules).expanduser())

    def lab_up(self, testbed: Testbed, plan: Plan | None, emit: Emit) -> lab.Access:
        """Start a testbed's lab with a kernel that can run the plan."""
        lab.require_supported_links(testbed)
        needs = lab.KernelNeeds(*needs_of(plan, self._project.catalogue)) if plan else DEFAULT_NEEDS
        return lab.up(testbed, self.lab_folder(testbed.name), needs, emit, self.user_mode, self._project.root)

    def lab_down(self, testbed: Testbed, emit: Emit, force: bool = False) -> bool:
        """Stop a testbed's lab; return whether it ran. Raises TestbedError while a campaign uses it.

        With `force`, the lab is stopped even then, and the disturbed campaign is recorded in
        results/forced.jsonl.
        """
        self._require_idle(testbed, f"fab lab.down --testbed {testbed.name}", emit, force)
        return lab.down(self.lab_folder(testbed.name), emit)

    def sessions(self, testbed: Testbed) -> Sessions:
        """Return the sessions of a testbed's hosts, not yet open. Raises LabError if the lab is down."""
        if testbed.lab is None:
            return Sessions(self._targets(testbed, None))
        lab.require_supported_links(testbed)
        access = lab.read_access(self.lab_folder(testbed.name))
        if access is None:
            raise LabError(
                f"lab {testbed.name} is not running; `fab lab.up --testbed {testbed.name}` starts it"
            )
        return Sessions(self._targets(testbed, access), lab.dial(access))

    @contextmanager
    def sessions_with_lab(self, planned: PlannedExperiment, emit: Emit) -> Iterator[Sessions]:
        """Yield the sessions of a testbed, not yet open; start its lab if it is down, stop it afterwards."""
        testbed = planned.testbed
        starts_lab = testbed.lab is not None and lab.read_access(self.lab_folder(testbed.name)) is None
        try:
            if starts_lab:
                self.lab_up(testbed, planned.plan, emit)
            with closing(self.sessions(testbed)) as sessions:
                yield sessions
        finally:
            if starts_lab:
                try:
                    self.lab_down(testbed, emit)
                except LeaseError as error:  # another campaign has started to use it meanwhile
                    emit(Event("warning", {"text": f"lab {testbed.name} is left running: {error}"}))

    def switch_power(self, host: str, action: str, testbed_name: str, force: bool, emit: Emit) -> str:
        """Switch a host's power or return its power status; raises DefinitionError or TestbedError.

        Without `force`, no host of a testbed that a campaign uses is switched off.
        """
        testbed = load_testbed(self._project.testbed_path(testbed_name))
        machines = machines_of(testbed)
        if host not in machines:
            raise TestbedError(unknown("host", host, machines))
        if action not in POWER_ACTIONS:
            raise TestbedError(unknown("power action", action, POWER_ACTIONS))
        if action in POWER_LOSS and machines[host].power is not None:
            command = f"fab power {host} {action} --testbed {testbed.name}"
            self._require_idle(testbed, command, emit, force)
        return machines[host].switch(action)

    def _require_idle(self, testbed: Testbed, command: str, emit: Emit, force: bool) -> None:
        if testbed.lab is not None and lab.read_access(self.lab_folder(testbed.name)) is None:
            return
        with closing(self.sessions(testbed)) as sessions:
            for host, lease in require_idle(sessions, command, self._project.results, force).items():
                text = f"{host}: campaign {lease.values.get('campaign')} is disturbed"
                emit(Event("warning", {"text": text}))

    def _targets(self, testbed: Testbed, access: lab.Access | None) -> Iterator[SshTarget]:
        config = self._project.config.ssh
        for name, host in testbed.hosts.items():
            ssh = testbed.ssh_of(name)
            key, known_hosts = (access.key, access.known_hosts) if access else (ssh.key, ssh.known_hosts)
            yield SshTarget(
                host=name,
                address=host.address,
                port=ssh.port,
                user=ssh.user,
                key=Path(key).expanduser() if key else None,
                known_hosts=Path(known_hosts).expanduser() if known_hosts else None,
                connect_timeout_s=config.connect_timeout_s,
                keepalive_s=config.keepalive_s,
                hint="is the lab up? `fab lab.up`" if access else "",
            )
