"""Faults of hosts and their control links: links cut, servers killed, hosts frozen and rebooted, keys changed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from samovar import lab
from samovar.lab.access import children
from tests.faults.fault import Fault, Strike
from tests.faults.hosts import wait_for
from tests.faults.scene import Scene, boot

BROKEN = ("failed", "invalid")
FLAPS = 12


def link(scene: Scene, host: str, state: str) -> None:
    """Take a host's control link up or down."""
    scene.lab.on_wire(f"ip link set {scene.lab.control_port(host)} {state}")


def cut_for(host: str, seconds: float) -> Strike:
    """Cut a host's control link for some seconds while data is sent."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        link(scene, host, "down")
        time.sleep(seconds)
        link(scene, host, "up")

    return strike


def cut_for_good(scene: Scene) -> None:
    """Cut the sender's control link while data is sent, and leave it cut."""
    scene.into_traffic()
    link(scene, "src", "down")


def heal(scene: Scene) -> None:
    """Restore the sender's control link."""
    link(scene, "src", "up")


def flapping(scene: Scene) -> None:
    """Take the router's control link down and up repeatedly, beginning before phase `arm`."""
    scene.let_go()
    for _ in range(FLAPS):
        link(scene, "rtr", "down")
        time.sleep(0.3)
        link(scene, "rtr", "up")
        time.sleep(0.3)


def connection_killed(host: str) -> Strike:
    """Kill the process of sshd that serves the controller on a host while data is sent."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        scene.lab.drop_connections(host)

    return strike


def connections_killed_at_once(scene: Scene) -> None:
    """Kill the sshd processes that serve the controller on every host at the start of a phase."""
    for host in scene.lab.hosts:
        scene.lab.drop_connections(host)
    scene.let_go()


def frozen(host: str, seconds: float) -> Strike:
    """Stop every process of a host while data is sent, and let them continue after some seconds."""

    def strike(scene: Scene) -> None:
        scene.into_traffic()
        scene.lab.send_all(host, signal.SIGSTOP)
        time.sleep(seconds)
        scene.lab.send_all(host, signal.SIGCONT)

    return strike


def frozen_for_good(scene: Scene) -> None:
    """Stop every process of the receiver while data is sent, and leave them stopped."""
    scene.into_traffic()
    scene.lab.send_all("dst", signal.SIGSTOP)


def thaw(scene: Scene) -> None:
    """Let the stopped processes continue."""
    scene.lab.send_all("dst", signal.SIGCONT)


def kernel_frozen(scene: Scene) -> None:
    """Stop the lab's kernel, and with it every host, for some seconds while data is sent."""
    (kernel,) = children(scene.lab.access.pid)
    scene.into_traffic()
    os.kill(kernel, signal.SIGSTOP)
    time.sleep(4)
    os.kill(kernel, signal.SIGCONT)


def host_lost(scene: Scene) -> None:
    """End a host as a power cut does: kill its first process, with which all others end, and start none again."""
    scene.into_traffic()
    os.kill(scene.lab.first_pid("dst"), signal.SIGKILL)


def lab_anew(scene: Scene) -> None:
    """Stop the remaining processes of the lab, and boot it again."""
    scene.bench.checkout.lab_down()
    scene.bench.lab = boot(scene.bench.checkout).lab


def rebooted(scene: Scene) -> None:
    """Reboot the router while data is sent. Hosts in namespaces share a kernel, so all of them reboot."""
    scene.into_traffic()
    force = "-q" if scene.lab.freebsd("rtr") else "-f"
    scene.lab.on("rtr", f"reboot {force} >/dev/null 2>&1 </dev/null &", check=False)


def hosts_back(scene: Scene) -> None:
    """Wait until every host answers again, and load the modules that the reboot has unloaded."""
    folder = scene.bench.lab_folder
    wait_for("the hosts", lambda: _all_answer(folder))
    scene.lab.load_modules()


def _all_answer(folder: Path) -> bool:
    access = lab.read_access(folder)
    return access is not None and len(lab.answering_hosts(access)) == len(access.hosts)


def stepped_clock(scene: Scene) -> None:
    """Set the receiver's clock an hour ahead while data is sent; native hosts share one clock."""
    scene.into_traffic()
    scene.lab.set_clock("dst", 3600)


def clock_back(scene: Scene) -> None:
    """Set the receiver's clock to the controller's again."""
    scene.lab.set_clock("dst", 0)


def wrong_host_key(scene: Scene) -> None:
    """Replace the sender's key in known_hosts, and make the controller connect again."""
    known = scene.bench.lab_folder / "known_hosts"
    scene.notes["known"] = known.read_bytes()
    address = scene.lab.access.hosts["src"]
    kept = [line for line in known.read_text().splitlines() if not line.startswith((address, f"[{address}]"))]
    other = scene.bench.checkout.folder / f"other-{scene.name}"
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(other)]
    subprocess.run(command, check=True)
    known.write_text("\n".join([*kept, f"{address} {other.with_suffix('.pub').read_text()}"]))
    connections_killed_at_once(scene)


def right_host_key(scene: Scene) -> None:
    """Restore known_hosts."""
    known = scene.bench.lab_folder / "known_hosts"
    known.write_bytes(bytes(scene.notes["known"]))  # type: ignore[call-overload]


def key_refused(scene: Scene) -> None:
    """Make every host refuse the controller's key, and make the controller connect again."""
    keys = scene.bench.lab_folder / "boot" / "authorized_keys"
    scene.notes["keys"] = keys.read_text()
    keys.write_text("")
    connections_killed_at_once(scene)


def key_accepted(scene: Scene) -> None:
    """Make the hosts accept the key again."""
    (scene.bench.lab_folder / "boot" / "authorized_keys").write_text(str(scene.notes["keys"]))


ANY = (0, 1)
LINK_FAULTS = (
    Fault("link-cut-1-s", "traffic", cut_for("src", 1), ("valid", "suspect", *BROKEN), ANY),
    Fault("link-cut-30-s", "traffic", cut_for("src", 30), BROKEN, (1,)),
    Fault("link-cut-for-good", "traffic", cut_for_good, BROKEN, (1,), mend=heal),
    Fault("link-flapping", "arm", flapping, ("valid", "suspect", *BROKEN), ANY),
    Fault("sshd-killed-at-sender", "traffic", connection_killed("src"), BROKEN, (1,), short=True),
    Fault("sshd-killed-at-router", "traffic", connection_killed("rtr"), BROKEN, (1,)),
    Fault("sshd-killed-in-set", "set", connections_killed_at_once, BROKEN, (1,)),
    Fault("sshd-killed-in-restore", "restore", connections_killed_at_once, BROKEN, (1,)),
    Fault("sshd-killed-in-collect", "collect", connections_killed_at_once, ("valid", *BROKEN), ANY),
    Fault("host-frozen-3-s", "traffic", frozen("dst", 3), ("valid", "suspect", *BROKEN), ANY),
    Fault("host-frozen-for-good", "traffic", frozen_for_good, BROKEN, (1,), mend=thaw, mended_first=True),
    Fault(
        "kernel-frozen-4-s",
        "traffic",
        kernel_frozen,
        ("valid", "suspect", *BROKEN),
        ANY,
        kernel="uml",
        inside=True,
    ),
    Fault(
        "power-cut-at-receiver",
        "traffic",
        host_lost,
        BROKEN,
        (1,),
        mend=lab_anew,
        mended_first=True,
        damages=True,
    ),
    Fault(
        "host-rebooted", "traffic", rebooted, BROKEN, (1,), mend=hosts_back, mended_first=True, kernel="uml"
    ),
    Fault(
        "clock-stepped-1-h",
        "traffic",
        stepped_clock,
        ("suspect", "valid", *BROKEN),
        ANY,
        mend=clock_back,
        kernel="uml",
    ),
    Fault("wrong-host-key", "set", wrong_host_key, BROKEN, (1,), mend=right_host_key),
    Fault("key-refused", "set", key_refused, BROKEN, (1,), mend=key_accepted, inside=True),
)
