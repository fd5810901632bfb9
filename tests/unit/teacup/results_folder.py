"""Write results folders in TEACUP's layout: every trial has the same real captures and SIFTR log, moved to its time."""

from __future__ import annotations

import gzip
import lzma
import struct
from functools import cache
from pathlib import Path

TRACES = Path(__file__).parents[2] / "traces"
PREFIX = "exp_20261122-120000"
FIRST_S = 1795268292
TRIAL_S = 100
"""Time between the starts of two trials."""
IFCONFIG = """\
em0: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tinet 10.0.2.15 netmask 0xffffff00 broadcast 10.0.2.255
em1: flags=1008843<UP,BROADCAST,RUNNING,SIMPLEX,MULTICAST,LOWER_UP> metric 0 mtu 1500
\tether 52:54:00:00:00:01
\tinet {} netmask 0xffffff00 broadcast 172.16.10.255
lo0: flags=1008049<UP,LOOPBACK,RUNNING,MULTICAST,LOWER_UP> metric 0 mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
"""
IPERF = "[  3]  0.0-10.0 sec  11.4 MBytes  9.56 Mbits/sec\n"
SECRET = "rootpw-not-to-be-copied"


@cache
def capture(host: str, later_s: int = 0) -> bytes:
    """Return the capture of a host; `later_s` is added to all its times."""
    data = bytearray(gzip.decompress((TRACES / "teacup" / f"{host}.dmp.gz").read_bytes()))
    at = 24
    while at < len(data):
        second, _, kept = struct.unpack_from("<III", data, at)
        struct.pack_into("<I", data, at, second + later_s)
        at += 16 + kept
    return bytes(data)


@cache
def siftr(later_s: int = 0) -> bytes:
    """Return the first seconds of the sender's SIFTR log; `later_s` is added to all its times."""
    text = lzma.decompress((TRACES / "freebsd" / "siftr-14.0.log.xz").read_bytes()).decode()
    head, *lines = text.splitlines(keepends=True)
    rows = [line.split(",", 2) for line in lines if line[:2] in ("i,", "o,")]
    moved = (f"{end},{float(t) + later_s:.6f},{rest}" for end, t, rest in rows if float(t) < FIRST_S + 4)
    return "".join([head, *moved]).encode()


def put(folder: Path, name: str, data: str | bytes) -> None:
    """Write data to a compressed file in the folder, as TEACUP does."""
    content = data if isinstance(data, bytes) else data.encode()
    (folder / f"{name}.gz").write_bytes(gzip.compress(content, 1, mtime=0))


def make_results(home: Path, levels: tuple[str, ...] = ("tcp_newreno", "tcp_cdg"), runs: int = 2) -> Path:
    """Write a results folder with a trial for each level and run, and return it."""
    folder = home / PREFIX
    folder.mkdir(parents=True)
    ids = [f"{PREFIX}_del_50_{level}_run_{run}" for level in levels for run in range(runs)]
    for number, id_ in enumerate(ids):
        make_trial(folder, id_, number * TRIAL_S)
    put(folder, f"{PREFIX}_tpconf_vars.log", f"TPCONF_power_admin_pw = '{SECRET}'\n")
    (folder / f"{PREFIX}_config.tar.gz").write_bytes(gzip.compress(f"env.password = '{SECRET}'".encode()))
    put(folder, f"{PREFIX}_varying_params.log", "V_delay del delays\n")
    return folder


def make_trial(folder: Path, id_: str, later_s: int = 0, log: tuple[str, str | bytes] | None = None) -> None:
    """Write the files of one trial; `log` is the sender's log of TCP, by default SIFTR's."""
    for host, address in (("src", "172.16.10.2"), ("dst", "172.16.11.2"), ("gw", "172.16.10.1")):
        put(
            folder,
            f"{id_}_{host}_uname.log",
            f"FreeBSD {host} 14.0-STABLE FreeBSD 14.0-STABLE GENERIC amd64\n",
        )
        put(folder, f"{id_}_{host}_ifconfig.log", IFCONFIG.format(address))
        put(folder, f"{id_}_{host}_ctl.dmp", capture("src", later_s)[:24])
        if host != "gw":
            put(folder, f"{id_}_{host}.dmp", capture(host, later_s))
    put(folder, f"{id_}_gw_em2_router.dmp", capture("dst", later_s)[:24])
    put(folder, f"{id_}_gw_queue_stats.log", "00001:  10.000 Mbit/s   50 ms burst 0\n")
    put(folder, f"{id_}_src_1_iperf_client.log", IPERF)
    put(folder, f"{id_}_dst_1_iperf_server.log", IPERF)
    name, content = log or ("siftr", siftr(later_s))
    put(folder, f"{id_}_src_{name}.log", content)
    put(folder, f"{id_}_config_vars.log", "U V_delay: 50\n")
