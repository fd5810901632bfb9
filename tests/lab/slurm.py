"""A Slurm cluster on this computer: a controller and two nodes, with all their files in one folder."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
NODES: tuple[str, ...] = ("n1", "n2")
CONFIGURATION = """\
ClusterName=samovar
SlurmctldHost={host}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={controller_port}
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
JobAcctGatherParams=OverMemoryKill
ReturnToService=2
JobRequeue=0
SlurmdTimeout=20
KillWait=20
MpiDefault=none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/completed
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


@dataclass
class Cluster:
    """A running cluster.

    Its processes are in a mount namespace of their own, in which /etc/slurm has the cluster's configuration.
    """

    folder: Path
    daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def inside(self) -> tuple[str, ...]:
        """The beginning of a command line that runs a program in the cluster's mount namespace."""
        return ("nsenter", f"--mount=/proc/{self.daemons['namespace'].pid}/ns/mnt", f"--wd={ROOT}", "--")

    def ask(self, *command: str) -> str:
        """Run one of Slurm's commands, and return its output."""
        words = [*self.inside, *command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def start_node(self, name: str) -> None:
        """Start the daemon of a node."""
        self._start(name, *self.inside, "slurmd", "-D", "-N", name)

    def start(self) -> None:
        """Start all daemons, and wait until both nodes can run jobs."""
        ready = self.folder / "ready"
        script = f"mount --bind {self.folder}/etc /etc/slurm && touch {ready} && exec sleep infinity"
        self._start("namespace", "unshare", "--mount", "--propagation", "private", "sh", "-c", script)
        self._wait_until(ready.exists, "the namespace")
        munge = {name: str(self.folder / f"munge.{name}") for name in ("key", "socket", "pid", "log", "seed")}
        words = ["--key-file=" + munge["key"], "--socket=" + munge["socket"], "--pid-file=" + munge["pid"]]
        words += ["--log-file=" + munge["log"], "--seed-file=" + munge["seed"], "--foreground", "--force"]
        user = pwd.getpwnam("munge")
        self._start("munged", "munged", *words, uid=user.pw_uid, gid=user.pw_gid)
        self._wait_until(lambda: Path(munge["socket"]).exists(), "munged")
        self._start("slurmctld", *self.inside, "slurmctld", "-D")
        for name in NODES:
            self.start_node(name)
        self.wait_for_nodes()

    def wait_for_nodes(self) -> None:
        """Wait until all nodes can run jobs."""
        self._wait_until(lambda: self._idle() == len(NODES), "the nodes")

    def kill_node(self, name: str) -> None:
        """Kill the daemon of a node and the processes of its jobs at once, as a loss of power does."""
        daemon = self.daemons.pop(name)
        daemon.kill()
        daemon.wait()
        while pids := self._job_processes(name):
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, 9)
            time.sleep(0.1)

    def stop(self) -> None:
        """End all daemons and wait for them."""
        for name in reversed(list(self.daemons)):
            self.daemons[name].terminate()
        for daemon in self.daemons.values():
            try:
                daemon.wait(30)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def _start(self, name: str, *command: str, uid: int | None = None, gid: int | None = None) -> None:
        with (self.folder / f"{name}.out").open("ab") as out:
            self.daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                user=uid,
                group=gid,
                start_new_session=True,
            )

    def _idle(self) -> int:
        words = [*self.inside, "sinfo", "-h", "-N", "-o", "%T"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout.split().count("idle")

    def _job_processes(self, node: str) -> set[int]:
        """Return the pids of the jobs on a node, and of the labs of these jobs.

        The environment of a job has the node's name. A lab's processes have another environment, but they are
        descendants of the job.
        """
        mark, found, parents = f"SLURMD_NODENAME={node}".encode(), set[int](), dict[int, int]()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                fields = (place / "stat").read_text().rpartition(")")[2].split()
                if fields[0] == "Z":
                    continue
                parents[int(place.name)] = int(fields[1])
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    found.add(int(place.name))
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def _wait_until(self, is_true: object, what: str, limit_s: float = 120) -> None:
        assert callable(is_true)
        deadline_s = time.monotonic() + limit_s
        while not is_true():
            assert time.monotonic() < deadline_s, f"{what}: not ready; logs are in {self.folder}"
            time.sleep(0.2)


def free_ports(number: int) -> list[int]:
    """Return unused TCP ports."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@contextmanager
def new_cluster() -> Iterator[Cluster]:
    """Start a cluster whose nodes run one job at a time, and end it with the context.

    Only root can enter pytest's folders, but munged runs as another user, so the cluster has a folder outside.
    """
    with TemporaryDirectory(prefix="slurm-") as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "cluster"
        folder.mkdir(mode=0o755)
        (folder / "state").mkdir()
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        shutil.chown(key, "munge", "munge")
        shutil.chown(folder, "munge")  # munged must own the folder of its socket
        host, ports = socket.gethostname(), free_ports(1 + len(NODES))
        nodes = "\n".join(
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=4000 State=UNKNOWN"
            for node, port in zip(NODES, ports[1:], strict=True)
        )
        text = CONFIGURATION.format(
            host=host, folder=folder, controller_port=ports[0], nodes=nodes, names=",".join(NODES)
        )
        (folder / "etc").mkdir()
        (folder / "etc" / "slurm.conf").write_text(text)
        made = Cluster(folder)
        try:
            made.start()
            yield made
        finally:
            made.stop()
