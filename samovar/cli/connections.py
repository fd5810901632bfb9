"""Connect to the hosts of a testbed: open SSH sessions, start and stop its lab, and switch power."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from samovar import campaign, lab
from samovar.campaign.availability import needs_of, require_idle
from samovar.cli.project import PlannedExperiment, Project
from samovar.errors import LabError, TestbedError, unknown
from samovar.events import Emit, Event
from samovar.experiment import Testbed
from samovar.hosts import POWER_ACTIONS, LeaseError, Sessions, SshTarget, machines_of
from samovar.plan import Plan, Shard

POWER_LOSS = ("off", "cycle")
DEFAULT_NEEDS = lab.KernelNeeds(frozenset({"cdg"}), frozenset({"netem"}))
"""The congestion controls and kernel features for a lab that `fab lab.up` starts without an experiment."""


class Connections:
    """Gives access to the hosts of a project's testbeds."""

    def __init__(self, project: Project) -> None:
        self._project = project

    def lab_folder(self, testbed: str, shard: str = "") -> Path:
        """Return the folder in which a lab keeps its state; each shard of a campaign has its own lab.

        Nodes of a cluster share the project, and shards of two campaigns may run on two nodes at the same
        time. The folder of a shard's lab is therefore named after the node, too.
        """
        names = (testbed, shard.replace("/", "of"), campaign.this_node()["node"]) if shard else (testbed,)
        return self._project.root / ".lab" / "-".join(names)

    def shards_with_labs(self, testbed: str) -> list[str]:
        """Return the shards, such as `2/4`, whose labs of a testbed were started on this computer."""
        names = sorted(folder.name for folder in self._project.root.glob(".lab/*"))
        start, node = re.escape(testbed), re.escape(campaign.this_node()["node"])
        matches = (re.fullmatch(rf"{start}-(\d+)of(\d+)-{node}", name) for name in names)
        return ["/".join(match.groups()) for match in matches if match]

    @property
    def user_mode(self) -> lab.UserModeConfig:
        """The user-mode kernel of config.yaml, with its paths resolved against the project folder."""
        uml, root = self._project.config.lab.uml, self._project.root
        program = str(root / Path(uml.program).expanduser()) if "/" in uml.program else uml.program
        return lab.UserModeConfig(program, root / Path(uml.modules).expanduser())

    def lab_up(self, testbed: Testbed, plan: Plan | None, emit: Emit) -> lab.Access:
        """Start a testbed's lab with a kernel that has what the plan needs (DEFAULT_NEEDS without a plan)."""
        needs = lab.KernelNeeds(*needs_of(plan, self._project.catalogue)) if plan else DEFAULT_NEEDS
        shard = plan.shard if plan else ""
        folder, turn = self.lab_folder(testbed.name, shard), Shard.parse(shard).number if shard else 1
        return lab.up(testbed, folder, needs, emit, self.user_mode, self._project.root, turn)

    def lab_down(self, testbed: Testbed, emit: Emit, force: bool = False, shard: str = "") -> bool:
        """Stop the lab of a testbed or of a shard; return whether the lab was running.

        Raises TestbedError if a campaign uses the lab. With `force`, the lab is stopped nevertheless.
        """
        self._require_idle(testbed, emit, force, shard)
        return lab.down(self.lab_folder(testbed.name, shard), emit)

    def sessions(self, testbed: Testbed, shard: str = "") -> Sessions:
        """Return sessions of a testbed's hosts without connecting to them.

        Raises LabError if the testbed's lab is down.
        """
        if testbed.lab is None:
            return Sessions(self._targets(testbed, None))
        access = lab.read_access(self.lab_folder(testbed.name, shard))
        if access is None and shard:
            raise LabError(f"lab {testbed.name} of shard {shard} is not running; `fab run` starts it")
        if access is None:
            raise LabError(
                f"lab {testbed.name} is not running; `fab lab.up --testbed {testbed.name}` starts it"
            )
        return Sessions(self._targets(testbed, access), lab.dial(access))

    @contextmanager
    def sessions_with_lab(self, planned: PlannedExperiment, emit: Emit) -> Iterator[Sessions]:
        """Yield sessions of a testbed's hosts without connecting to them.

        If the testbed has a lab that is down, the lab is started first, and stopped afterwards.
        """
        testbed, shard = planned.testbed, planned.plan.shard
        folder = self.lab_folder(testbed.name, shard)
        starts_lab = testbed.lab is not None and lab.read_access(folder) is None
        try:
            if starts_lab:
                self.lab_up(testbed, planned.plan, emit)
            with closing(self.sessions(testbed, shard)) as sessions:
                yield sessions
        finally:
            if starts_lab:
                try:
                    self.lab_down(testbed, emit, shard=shard)
                except LeaseError as error:  # another campaign has begun to use the lab
                    emit(Event("warning", {"text": f"lab {testbed.name} is left running: {error}"}))

    def switch_power(self, host: str, action: str, testbed_name: str, force: bool, emit: Emit) -> str:
        """Switch a host's power, or query its state; return the output. Raises DefinitionError, TestbedError.

        Without `force`, a host is neither switched off nor power-cycled while a campaign uses the testbed.
        """
        testbed = self._project.testbed(testbed_name)
        machines = machines_of(testbed)
        if host not in machines:
            raise TestbedError(unknown("host", host, machines))
        if action not in POWER_ACTIONS:
            raise TestbedError(unknown("power action", action, POWER_ACTIONS))
        if action in POWER_LOSS and machines[host].power is not None:
            self._require_idle(testbed, emit, force)
        return machines[host].switch(action)

    def _require_idle(self, testbed: Testbed, emit: Emit, force: bool, shard: str = "") -> None:
        if testbed.lab is not None and lab.read_access(self.lab_folder(testbed.name, shard)) is None:
            return
        with closing(self.sessions(testbed, shard)) as sessions:
            for host, lease in require_idle(sessions, force).items():
                text = f"{host}: campaign {lease.values.get('campaign')}, which uses the host, is disturbed"
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
