"""Inspect and disturb the hosts of a lab without samovar: processes, settings, files, signals, clocks.

Hosts on the machine's own kernel are entered through their namespaces, so that they can be inspected while their
link is cut. Hosts of a user-mode kernel and virtual machines are reached by ssh.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from shlex import quote

from samovar import lab
from samovar.experiment import Testbed

WAIT_S = 600.0
"""A time limit that suffices for a busy emulated machine; only a failed test waits this long."""
LEASE = "/var/tmp/samovar-lease"
"""The lease file, which stays on a host if its controller is killed. It names the campaign that used the host."""
UNCOLLECTED = "/tmp/samovar/"
"""The folder on hosts with files of trials that have not been fetched yet."""
CONTROL = "ctl0"
LOOK = r"""
echo '-- state'
# One grep reads all files, because starting a program is slow in a user-mode kernel. The values of the last two keys depend
# on the memory at boot, which differs by a few MB between boots of a user-mode kernel.
grep -s . /proc/sys/net/ipv4/* /proc/sys/net/core/* /proc/sys/net/ipv4/conf/*/* |
  grep -v -e fastopen_key -e /route/ -e tcp_ehash_entries -e tcp_max_tw_buckets
ip -o -d link show | sed 's/promiscuity [0-9]*//; s/allmulti [0-9]*//'
ip route show table all
ip rule show
tc -d qdisc show
for i in /sys/class/net/eth*; do ethtool -k "${i##*/}"; ethtool -g "${i##*/}" 2>/dev/null; done
echo '-- files'
find /tmp /var/tmp /root /run ! -type d ! -path '/run/lock/*'
find /tmp/samovar -mindepth 2 -type d 2>/dev/null
echo '-- end'
"""
LOOK_FREEBSD = r"""
echo '-- state'
sysctl -W net.inet net.link net.bpf kern.ipc
for i in $(ifconfig -l); do
  case $i in lo* | @CONTROL@) ;; *) ifconfig "$i"; kenv -q "dev.${i%%[0-9]*}.${i##*[a-z]}.iflib.override_ntxds" ;; esac
done
# The lab itself sets a flag of a route to lo0 at the first boot only.
netstat -rn | grep -v -e lo0 -e @CONTROL@
ipfw list
ipfw pipe list
ipfw sched list
kldstat | awk 'NR > 1 { print $NF }' | sort
echo '-- files'
find /tmp /var/tmp /root /var/run ! -type d ! -name 'utx.*'
find /tmp/samovar -mindepth 2 -type d 2>/dev/null
echo '-- end'
"""
LOAD_MODULES_FREEBSD = """
kldload -n ipfw
ipfw list 65534 >/dev/null 2>&1 || ipfw -q add 65534 allow ip from any to any
kldload -n dummynet
kldload -n siftr
kldload -n cc_cubic
"""
"""Loads the kernel modules that trials load and never unload, so that they are part of the state before the faults."""


def wait_for(what: str, condition: Callable[[], object], seconds: float = WAIT_S) -> None:
    """Poll a condition until it holds. Fails with the text `what` after `seconds`."""
    end_s = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end_s, f"{what}: not within {seconds:g} s"
        time.sleep(0.02)


@dataclass(frozen=True)
class HostState:
    """The settings and files of a host at one moment."""

    state: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def differences_from(self, before: HostState) -> list[str]:
        """Return the differences from an earlier moment: lines of settings, and new files."""
        gone = [f"- {line}" for line in before.state if line not in self.state]
        new = [f"+ {line}" for line in self.state if line not in before.state]
        return [*gone, *new, *(f"file {name}" for name in self.files if name not in before.files)]


@dataclass
class Lab:
    """The hosts of a running lab, and their state after booting."""

    access: lab.Access
    testbed: Testbed
    before: dict[str, HostState] = field(default_factory=dict)
    _ran_before: dict[str, list[str]] = field(default_factory=dict)
    _first_pids: dict[str, int] = field(default_factory=dict)

    @property
    def native(self) -> bool:
        """Whether the hosts are namespaces of the machine's own kernel."""
        return self.access.kernel == "native"

    def freebsd(self, host: str) -> bool:
        """Whether a host runs FreeBSD."""
        return self.testbed.hosts[host].os == "freebsd"

    def is_machine(self, host: str) -> bool:
        """Whether a host is a virtual machine."""
        return bool(self.testbed.hosts[host].image)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return tuple(self.access.hosts)

    def on(self, host: str, script: str, check: bool = True) -> str:
        """Run a script on a host; return its output."""
        enter = self._enter(host) if self.native else lab.shell_command(self.access, host)
        last = ["sh", "-c", script]  # the login shell may be csh
        last = last if self.native else [" ".join(map(quote, last))]
        done = subprocess.run([*enter, *last], capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert not check or done.returncode == 0, f"{host}: {done.stdout}{done.stderr}"
        return done.stdout

    def sent_bytes(self, host: str) -> int:
        """Return how many bytes a host has sent from its first testbed interface; start no program on a native Linux host."""
        interface = next(iter(self.testbed.hosts[host].interfaces))
        if self.freebsd(host):
            count = "NR == 2 { print $(NF - 1) }"  # the bytes sent; the last column has the collisions
            return int(self.on(host, f"netstat -I {interface} -b -n | awk '{count}'"))
        file = f"/sys/class/net/{interface}/statistics/tx_bytes"
        if self.native:
            return int(Path(f"/proc/{self.first_pid(host)}/root{file}").read_text())
        return int(self.on(host, f"cat {file}"))

    def on_wire(self, script: str) -> None:
        """Run a script in the namespace in which the hosts' control links end (not with a user-mode kernel)."""
        command = ["nsenter", "--target", str(self.access.pid), "--net", "sh", "-ec", script]
        subprocess.run(command, check=True, capture_output=True, timeout=WAIT_S)

    def control_port(self, host: str) -> str:
        """Return the bridge port at the end of a host's control link."""
        return f"{'vm' if self.is_machine(host) else 'ctlp'}{self.hosts.index(host) + 1}"

    def look(self, host: str) -> HostState:
        """Return a host's settings and files."""
        parts = self.on(host, self._look(host)).split("-- files\n")
        state = parts[0].partition("-- state\n")[2]
        files = parts[1].partition("-- end")[0]
        # Some faults cut the control link, which trials never change.
        settings = (line for line in state.splitlines() if CONTROL not in line)
        return HostState(tuple(settings), tuple(files.splitlines()))

    def _look(self, host: str) -> str:
        if not self.freebsd(host):
            return LOOK
        drivers = {name.rstrip("0123456789") for name in self.testbed.hosts[host].interfaces}
        assert len(drivers) == 1, f"{host}: interfaces of {drivers}"
        return LOOK_FREEBSD.replace("@CONTROL@", f"{drivers.pop()}0")

    def remember(self) -> None:
        """Store the state of every host, once its links are up, as the state before all faults."""
        show = "if command -v ip >/dev/null; then ip link show; else ifconfig; fi"
        links = f"{show} | grep -i 'no.carrier' || true"
        wait_for("the links", lambda: not any(self.on(host, links) for host in self.hosts))
        self.load_modules()
        self.before = {host: self.look(host) for host in self.hosts}
        self._ran_before = {host: self.running(host) for host in filter(self.is_machine, self.hosts)}

    def load_modules(self) -> None:
        """Load on each FreeBSD host the modules that trials load and never unload; a reboot unloads them."""
        for host in filter(self.freebsd, self.hosts):
            self.on(host, LOAD_MODULES_FREEBSD)

    def differences(self, may_stay: tuple[str, ...] = ()) -> list[str]:
        """List changes, leftover files and processes of all hosts, except files whose paths begin with one of `may_stay`."""
        lines = [f"{host}: {line}" for host in self.hosts for line in self._differences(host)]
        return [line for line in lines if not any(f"file {text}" in line for text in may_stay)]

    def _differences(self, host: str) -> Iterator[str]:
        yield from self.look(host).differences_from(self.before[host])
        yield from (f"still runs {name}" for name in self.running(host))

    def running(self, host: str) -> list[str]:
        """Return the command lines of a host's processes, except sshd and those of this inspection."""
        if self.native:
            names = {_cmdline(pid) for pid in self.pids(host)}
        else:
            names = {line.strip() for line in self.on(host, "ps -ax -o args= | grep -v '\\['").splitlines()}
            names -= {"grep -v \\[", *self._ran_before.get(host, ())}
        own = ("sshd:", "/usr/sbin/sshd", "sh /mnt/", "linux.uml", "/bin/sh /mnt/", "unshare")
        return sorted(name for name in names if name and not name.startswith(own) and "ps -ax -o" not in name)

    def first_pid(self, host: str) -> int:
        """Return the process whose end is the end of its host: its sshd, or the QEMU of a virtual machine.

        This cannot be called for hosts of a user-mode kernel.
        """
        if host not in self._first_pids:
            self._first_pids[host] = self._find_first_pid(host)
        return self._first_pids[host]

    def _find_first_pid(self, host: str) -> int:
        machine = self.is_machine(host)
        mark = f"qemu-system-x86_64 -name {host} " if machine else f"/mnt/hosts/{host}/sshd_config"
        found = [pid for pid in _descendants(self.access.pid) if mark in _cmdline(pid)]
        leaders = [pid for pid in found if machine or _is_first(pid)]
        assert leaders, f"{host}: no process {mark}"
        return leaders[0]

    def pids(self, host: str) -> list[int]:
        """Return all processes of a native host: those in the PID namespace of its sshd."""
        space = os.readlink(f"/proc/{self.first_pid(host)}/ns/pid")
        return [pid for pid in _descendants(self.access.pid) if _pid_namespace(pid) == space]

    def named(self, host: str, name: str) -> list[int]:
        """Return the processes of a native host that run a program of this name."""
        return [pid for pid in self.pids(host) if _comm(pid) == name]

    def runs(self, host: str, name: str) -> bool:
        """Whether a host runs a program of this name."""
        if self.is_machine(host):
            return bool(self.on(host, f"pgrep -x {name}", check=False))
        return bool(self.named(host, name))

    def send(self, host: str, name: str, number: signal.Signals) -> bool:
        """Send a signal to every process of this name on a host; return whether there were any."""
        if self.is_machine(host):
            return "sent" in self.on(host, f"pkill -{number.name} -x {name} && echo sent", check=False)
        pids = self.named(host, name)
        for pid in pids:
            _kill(pid, number)
        return bool(pids)

    def send_all(self, host: str, number: signal.Signals) -> None:
        """Send a signal to every process of a host including its first one, or to the QEMU of a virtual machine."""
        for pid in [self.first_pid(host)] if self.is_machine(host) else self.pids(host):
            _kill(pid, number)

    def drop_connections(self, host: str) -> None:
        """Kill the sshd processes that serve a connection, but not the one that listens."""
        if self.is_machine(host):
            # This also ends the connection of the command.
            self.on(host, "pkill -KILL -f '^sshd: root'", check=False)
            return
        first = self.first_pid(host)
        served = [pid for pid in self.named(host, "sshd") if pid != first]
        for pid in served:
            _kill(pid, signal.SIGKILL)
        assert served, f"{host}: no sshd process serves a connection"

    def set_clock(self, host: str, ahead_s: int) -> None:
        """Set a host's clock to this machine's clock plus some seconds."""
        date = "date -u -f %s" if self.freebsd(host) else "date -s"
        self.on(host, f"{date} {'' if self.freebsd(host) else '@'}{int(time.time()) + ahead_s} >/dev/null")

    def _enter(self, host: str) -> list[str]:
        return ["nsenter", "--target", str(self.first_pid(host)), "--mount", "--net", "--uts", "--pid"]


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return  # it ended by itself meanwhile


def _descendants(root: int) -> list[int]:
    """Return a process and all its descendants."""
    parents = {int(name): _parent(int(name)) for name in os.listdir("/proc") if name.isdigit()}

    def below(pid: int) -> bool:
        while pid > 1 and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return [pid for pid in parents if below(pid)]


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def state_of(pid: int) -> str:
    """Return the state letter of a process (proc(5)), or an empty text if the process has ended."""
    fields = _stat(pid)
    return fields[0] if fields else ""


def _is_first(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in status.splitlines())


def _pid_namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _cmdline(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode(errors="replace").strip()
