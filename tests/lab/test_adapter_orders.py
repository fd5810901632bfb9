"""Give a pair of powerline adapters hundreds of orders under heavy traffic: every order must be obeyed, on each kernel."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from samovar import lab
from samovar.events import silent
from samovar.experiment import load_testbed
from tests.lab.flood import FLOOD, SINK, command
from tests.lab.kernels import KERNELS, ROOT, Hosts

pytestmark = pytest.mark.proof  # starts a lab on each kernel
ORDERS = 300
PLACE = "/mnt/devices/powerline"
ORDER_PROGRAM = """
import itertools, sys, time
place, count = sys.argv[1], int(sys.argv[2])
def told():
    return dict(line.rstrip().split("=", 1) for line in open(place + "/state"))
kinds = itertools.product((1, 3, 30, 2720), ("1e6", "80e6"), (0, 1), (0, 1), (0, 1, 65535), (0, 2000000))
first, passed, refused = int(told()["number"]), 0, 0
for number, kind in zip(range(first + 1, first + 1 + count), itertools.cycle(kinds)):
    words = "buffer_down_frames={0} buffer_up_frames={0} rate_down_bps={1} rate_up_bps={1} simplex={2} " \\
            "flow_control={3} pause_quanta={4} delay_down_ns={5} drift=0.2".format(*kind)
    for order in ("set", words), ("tell", ""):
        with open(place + "/orders", "w") as orders:
            print(order[0], number, order[1], file=orders)
        end = time.monotonic() + 30
        while (state := told())["number"] != str(number) and time.monotonic() < end:
            time.sleep(0.01)
        if state["number"] != str(number):
            sys.exit(f"{order} {number} was not obeyed, {number - first - 1} were; in force: {state}")
        refused += "refused" in state
        time.sleep(0.02 if order[0] == "set" else 0)
    passed += int(state["down_in_packets"]) + int(state["up_in_packets"])
print(number - first, refused, passed)
"""
"""Give COUNT orders, one after the other, to the device at PLACE; print the numbers of orders obeyed and refused, and of frames."""


@pytest.fixture(scope="module", params=KERNELS)
def hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    folder = tmp_path_factory.mktemp(request.param)
    file = folder / "powerline.yaml"
    text = (ROOT / "hosts" / "powerline.yaml").read_text()
    file.write_text(text.replace("kernel: auto", f"kernel: {request.param}"))
    access = lab.up(load_testbed(file), folder / ".lab", lab.KernelNeeds(), silent)
    yield Hosts(access)
    lab.down(folder / ".lab", silent)


def flooding(hosts: Hosts, source: str, address: str) -> subprocess.Popen[bytes]:
    """Start a program on a host that sends faster than any medium in the test, until it is stopped."""
    send = f"{command(FLOOD)} {address} 5009 572 700 16 95e6"
    return subprocess.Popen(
        [*lab.shell_command(hosts.access, source), f"exec {send}"], stdin=subprocess.DEVNULL
    )


@pytest.fixture(scope="module")
def flooded(hosts: Hosts) -> Iterator[Hosts]:
    """Hosts that flood the adapters in both directions."""
    for host in ("src", "dst"):
        hosts.run(host, f"{command(SINK)} 5009 700 </dev/null >/dev/null 2>&1 & echo $! >/tmp/sink")
    floods = [flooding(hosts, "src", "172.16.12.3"), flooding(hosts, "dst", "172.16.12.2")]
    yield hosts
    for flood in floods:
        flood.kill()
        flood.wait()


def test_every_order_is_obeyed_while_both_directions_are_flooded(flooded: Hosts) -> None:
    give = [*lab.shell_command(flooded.access, "src"), f"{command(ORDER_PROGRAM)} {PLACE} {ORDERS}"]
    done = subprocess.run(give, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    obeyed, refused, passed = map(int, done.stdout.split())
    assert (obeyed, refused) == (ORDERS, 0)
    assert passed > 10 * ORDERS, "the adapters carried frames meanwhile"
    assert flooded.run("src", f"cat {PLACE}/log") == ""
