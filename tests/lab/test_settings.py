"""Every setting on real kernels: set, read back, confirmed by another command, and restored."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from samovar.errors import LabError
from tests.lab.kernels import CATALOGUE, KERNELS, Hosts, apply, refusal, running

ETH1 = ("eth1",)
# Keeps a TAP device open, because it has no carrier without a reader. The program ends with the lab.
HOLD = """
ip tuntap add dev em0 mode tap && ip link set em0 up
cat >/tmp/hold.py <<'END'
import fcntl, os, signal, struct
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454CA, struct.pack("16sH", b"em0", 0x1002))
signal.pause()
END
python3 /tmp/hold.py </dev/null >/dev/null 2>&1 &
carried() { read -r c_up </sys/class/net/em0/carrier && [ "$c_up" = 1 ]; }
await 10 carried
"""


@pytest.fixture(scope="module", params=KERNELS)
def hosts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    try:
        with running(request.param, tmp_path_factory.mktemp(request.param)) as made:
            made.run("src", HOLD)
            yield made
    except LabError as error:
        pytest.skip(str(error))


SETTINGS = [
    ("tcp", {}, "cat /proc/sys/net/ipv4/tcp_ecn", "0"),
    ("tcp", {"sack": 0}, "sysctl -n net.ipv4.tcp_sack", "0"),
    ("tcp", {"timestamps": 0, "window_scaling": 0}, "sysctl -n net.ipv4.tcp_timestamps", "0"),
    ("tcp", {"ecn": "on"}, "sysctl -n net.ipv4.tcp_ecn", "1"),
    ("tcp", {"autotuning": 0}, "sysctl -n net.ipv4.tcp_moderate_rcvbuf", "0"),
    ("tcp", {"slow_start_after_idle": 0}, "sysctl -n net.ipv4.tcp_slow_start_after_idle", "0"),
    ("tcp", {"notsent_lowat": 131072}, "sysctl -n net.ipv4.tcp_notsent_lowat", "131072"),
    ("tcp", {"recovery": 0, "early_retrans": 0, "frto": 0}, "sysctl -n net.ipv4.tcp_recovery", "0"),
    ("buffers", {}, "sysctl -n net.ipv4.tcp_wmem", "33554432"),
    ("buffers", {"receive_max": 200_000}, "sysctl -n net.ipv4.tcp_rmem", "200000"),
    ("mtu", {"interfaces": ETH1, "mtu_bytes": 600}, "ip link show eth1", "mtu 600"),
    ("offloads", {"interfaces": ETH1, "tso": 1, "gro": 1}, "ethtool -k eth1", "tcp-segmentation-offload: on"),
    ("offloads", {"interfaces": ETH1, "gso": 1}, "ethtool -k eth1", "generic-segmentation-offload: on"),
    ("offloads", {"interfaces": ETH1, "tx_checksum": 0}, "ethtool -k eth1", "tx-checksumming: off"),
    (
        "shaper",
        {"interfaces": ETH1, "rate": 40_000_000},
        "tc qdisc show dev eth1",
        "rate 40Mbit burst 20000b",
    ),
    (
        "command",
        {
            "run": "sysctl -w net.ipv4.tcp_frto=0",
            "undo": "sysctl -w net.ipv4.tcp_frto=2",
            "state": "sysctl net.ipv4.tcp_frto",
        },
        "sysctl -n net.ipv4.tcp_frto",
        "0",
    ),
    ("txd", {"interfaces": ("em0",), "txd": 256}, "ip link show em0", "qlen 256"),
    ("speed", {"interfaces": ("em0",), "rate": 100_000_000}, "ethtool em0", "Speed: 100Mb/s"),
    ("cc", {"algorithm": "newreno", "parameters": {}}, "sysctl -n net.ipv4.tcp_congestion_control", "reno"),
    (
        "cc",
        {"algorithm": "cubic", "parameters": {"beta": "512", "fast_convergence": "off"}},
        "cat /sys/module/tcp_cubic/parameters/beta",
        "512",
    ),
]


@pytest.mark.parametrize(("name", "values", "look", "shown"), SETTINGS)
def test_a_setting_is_set_read_back_and_restored(
    hosts: Hosts, name: str, values: dict[str, object], look: str, shown: str
) -> None:
    done = apply(hosts, "src", name, values, look)
    assert done.unmet == ()
    assert shown in done.output
    assert done.before == done.after
    assert done.while_set.keys() == done.before.keys()


def test_every_setting_is_tested_in_this_file_or_in_another(hosts: Hosts) -> None:
    elsewhere = {"adapter", "air", "bottleneck", "rwnd", "pause", "wlan"}
    assert {name for name, *_ in SETTINGS} | elsewhere == CATALOGUE.names("setting", "linux")


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("txd", {"interfaces": ETH1, "txd": 256}, "eth1 has no transmit ring to set to 256"),
        ("pause", {"interfaces": ETH1}, "ethtool -a shows no flow control that can be set on eth1"),
        ("speed", {"interfaces": ETH1, "rate": 100_000_000}, "eth1 cannot be set to 100 Mbit/s full"),
        ("speed", {"interfaces": ("em0",), "rate": 1_500_000}, "speed is a whole number of Mbit/s"),
        ("buffers", {"socket_receive_max": 8_000_000}, "belongs to the whole machine and cannot be set"),
        ("cc", {"algorithm": "nosuch", "parameters": {}}, "does not offer the congestion control nosuch"),
        ("cc", {"algorithm": "cubic", "parameters": {"betta": "1"}}, "cubic has no parameter betta; it has:"),
    ],
)
def test_a_setting_that_a_host_does_not_support_is_refused_with_the_reason(
    hosts: Hosts, name: str, values: dict[str, object], sentence: str
) -> None:
    assert sentence in refusal(hosts, "src", name, values)


def test_a_shaper_limits_the_rate_at_which_a_host_sends(hosts: Hosts) -> None:
    hosts.run("dst", "nuttcp -1 -P 5101 </dev/null >/dev/null 2>&1")
    values = {"interfaces": ETH1, "rate": 8_000_000, "queue": 50}
    done = apply(hosts, "src", "shaper", values, "nuttcp -T 3 -fparse -P 5101 172.16.11.2")
    rates = [word.partition("=")[2] for word in done.output.split() if word.startswith("rate_Mbps=")]
    # A full segment at MTU 1500 has 1448 bytes of payload in a frame of 1514 bytes. TCP may need some of the three
    # seconds to recover from losses after slow start, but it cannot exceed the limit.
    assert 0.8 * 8 * 1448 / 1514 < float(rates[0]) < 8 * 1448 / 1514 * 1.05
    assert done.while_set["shaper.eth1.queue"] == "pfifo limit 50p"
    assert done.before == done.after


def test_the_parameters_of_cdg_are_set_and_restored(hosts: Hosts) -> None:
    if hosts.kernel != "uml":
        pytest.skip("the machine's own kernel may not have cdg")
    values = {
        "algorithm": "cdg",
        "parameters": {"backoff_beta": "512", "use_ineff": "0", "use_shadow": "off"},
    }
    done = apply(hosts, "src", "cc", values, "grep . /sys/module/tcp_cdg/parameters/*")
    assert done.unmet == ()
    assert "use_shadow:N" in done.output
    assert done.before == done.after


def test_a_load_time_parameter_is_refused_if_its_module_cannot_be_loaded_again(
    hosts: Hosts,
) -> None:
    name, parameter = ("cdg", "window") if hosts.kernel == "uml" else ("cubic", "bic_scale")
    sentence = refusal(hosts, "src", "cc", {"algorithm": name, "parameters": {parameter: "16"}})
    assert f"{name} accepts {parameter}=16 only while its module is being loaded" in sentence
