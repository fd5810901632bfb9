"""Faults on hosts: generators, captures, tools, disks, queue disciplines and settings."""

from __future__ import annotations

import signal
from pathlib import Path
from shlex import quote

from tests.faults.fault import Fault, Strike
from tests.faults.hosts import wait_for
from tests.faults.scene import Scene

FOREIGN = "tc qdisc {} dev eth1 root handle 99: pfifo limit 100"
BROKEN = ("failed", "invalid")
FILLER = """\
arrived() { cat /sys/class/net/eth1/statistics/rx_bytes; }
before=$(arrived) n=0
{
  until [ $(($(arrived) - before)) -gt 100000 ] || [ $n -gt 1200 ]; do n=$((n + 1)); sleep 0.05; done
  : >/tmp/full
  while [ -e /tmp/full ] && [ $n -le 2400 ]; do head -c 8388608 /dev/zero >>/tmp/full; n=$((n + 1)); sleep 0.05; done
} >/dev/null 2>&1 &
"""
"""Fills the host's disk once traffic arrives. It waits on the host itself, because on a busy machine the traffic may end before
a command from outside arrives. It also fills space that is freed meanwhile, because otherwise there would be room for the few
bytes that gzip writes last."""
SEEN_AT = "/mnt"
"""The path of the lab's boot folder on hosts; each host has its own /tmp."""


def replaced(host: str, program: str, text: str) -> Strike:
    """Replace a program on a host by a script when a phase begins; `@REAL@` stands for the real program."""

    def strike(scene: Scene) -> None:
        replace(scene, host, program, text)
        scene.let_go()

    return strike


def replace(scene: Scene, host: str, program: str, text: str) -> None:
    """Mount a script over a program in the mount namespace of one host; on a virtual machine, rename the program."""
    place = scene.lab.on(host, f"command -v {program}").strip()
    if scene.lab.is_machine(host):
        moved = f"{place.rpartition('/')[0]}/real-{program}"
        script = quote(text.replace("@REAL@", moved))
        scene.lab.on(host, f"mv {place} {moved} && printf %s {script} >{place} && chmod 755 {place}")
        scene.notes[f"{host}:{place}"] = moved
        return
    name = f"{scene.name}-{host}"
    folder = scene.bench.lab_folder / "boot" / name
    folder.mkdir(exist_ok=True)
    real, fake = folder / f"real-{program}", folder / program
    real.write_bytes(Path(place).read_bytes())
    fake.write_text(text.replace("@REAL@", f"{SEEN_AT}/{name}/{real.name}"))
    real.chmod(0o755)
    fake.chmod(0o755)
    scene.lab.on(host, f"mount --bind {SEEN_AT}/{name}/{program} {place}")
    scene.notes[f"{host}:{place}"] = True


def back(scene: Scene) -> None:
    """Restore the programs that scripts replace."""
    for name, moved in scene.notes.items():
        host, _, place = name.partition(":")
        scene.lab.on(host, f"mv {moved} {place}" if scene.lab.is_machine(host) else f"umount -l {place}")


def hung(host: str, program: str) -> Strike:
    """Stop a program (SIGSTOP) on a host while data is sent, and do not let it continue."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        assert scene.lab.send(host, program, signal.SIGSTOP)

    return strike


def died(host: str, program: str) -> Strike:
    """Kill a program on a host while data is sent."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        assert scene.lab.send(host, program, signal.SIGKILL)

    return strike


def dropping(scene: Scene) -> None:
    """Make a capture lose packets: give it the smallest buffer, and stop it until the traffic has ended."""
    replace(scene, "dst", "tcpdump", '#!/bin/sh\nexec @REAL@ -B 16 "$@" -B 16\n')
    scene.let_go()
    wait_for("the capture", lambda: scene.lab.runs("dst", "real-tcpdump"))
    scene.into_traffic()
    assert scene.lab.send("dst", "real-tcpdump", signal.SIGSTOP)
    wait_for("the restoring", lambda: any(e.values.get("phase") == "traffic" for e in scene.journal()[-8:]))
    scene.lab.send("dst", "real-tcpdump", signal.SIGCONT)


def full_disk(host: str) -> Strike:
    """Shrink the disk that a host's trials write to, and fill it once data arrives at the host."""

    def strike(scene: Scene) -> None:
        scene.lab.on(host, "mount -o remount,size=8m /tmp")
        scene.lab.on(host, FILLER)
        scene.into_traffic()

    return strike


def emptied(host: str) -> Strike:
    """Delete the file that fills the host's disk, and enlarge the disk again."""

    def mend(scene: Scene) -> None:
        scene.lab.on(host, "rm -f /tmp/full; mount -o remount,size=50% /tmp")

    return mend


def foreign_qdisc(scene: Scene) -> None:
    """Make the kernel refuse the queue discipline, by adding another one between phases `read` and `set`."""
    scene.lab.on("src", FOREIGN.format("add"))
    scene.let_go()


def no_foreign_qdisc(scene: Scene) -> None:
    """Remove the other queue discipline."""
    scene.lab.on("src", "tc qdisc del dev eth1 root handle 99: || true")


SILENT = "#!/bin/sh\nexec sleep 1000\n"
CRASHING = "#!/bin/sh\necho 'cannot start' >&2\nexit 127\n"
MUTE = "#!/bin/sh\nexit 0\n"
PROGRAM_FAULTS = (
    Fault("generator-hangs-at-sender", "traffic", hung("src", "iperf3"), BROKEN, (1,)),
    Fault("generator-hangs-at-receiver", "traffic", hung("dst", "iperf3"), BROKEN, (1,)),
    Fault("generator-dies-at-once", "arm", replaced("src", "iperf3", CRASHING), BROKEN, (1,), mend=back),
    Fault("generator-dies-in-traffic", "traffic", died("src", "iperf3"), BROKEN, (1,)),
    Fault("generator-never-listens", "arm", replaced("dst", "iperf3", SILENT), BROKEN, (1,), mend=back),
    Fault("tcpdump-dies", "traffic", died("dst", "tcpdump"), BROKEN, (1,), short=True),
    Fault("tcpdump-never-starts", "arm", replaced("src", "tcpdump", CRASHING), BROKEN, (1,), mend=back),
    Fault("tcpdump-drops", "arm", dropping, BROKEN, (1,), mend=back),
    Fault(
        "tcpdump-fills-the-disk",
        "traffic",
        full_disk("dst"),
        BROKEN,
        (1,),
        mend=emptied("dst"),
        mended_first=True,
        inside=True,
    ),
    Fault("sampler-dies", "traffic", died("rtr", "python3"), BROKEN, (1,), inside=True),
    Fault(
        "tool-says-nothing",
        "guard",
        replaced("src", "ethtool", MUTE),
        BROKEN,
        (1,),
        mend=back,
        mended_first=True,
        inside=True,
    ),
    Fault("tool-missing", "arm", replaced("src", "gzip", CRASHING), BROKEN, (1,), mend=back),
    Fault(
        "qdisc-refused",
        "set",
        foreign_qdisc,
        BROKEN,
        (1,),
        mend=no_foreign_qdisc,
        mended_first=True,
        inside=True,
    ),
)
