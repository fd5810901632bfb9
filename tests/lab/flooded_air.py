"""Run a simulated WLAN in a network namespace, fill the queues of its stations, and print the WLAN's record.

    python3 flooded_air.py PROGRAM FOLDER STATIONS FRAMES SECONDS

Run this with `unshare -rn`. Each station sends FRAMES frames of 1514 bytes to the access point. After SECONDS more
seconds, the record is printed as CSV, followed by a line with the share of a CPU that the program used in this time.
"""

import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

PROGRAM, FOLDER, STATIONS, FRAMES, SECONDS = sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:6])
LENGTH_BYTES, BATCH = 1514, 20
# An EtherType for experiments (IEEE 802), which no protocol of the kernel answers.
LOCAL_EXPERIMENTAL = bytes.fromhex("88b5")


def mac(port: int) -> bytes:
    return bytes((2, 0, 0, 0, 0, port))


def order(text: str) -> None:
    number = int(state()["number"]) + 1
    (FOLDER / "orders").write_text(f"{text.format(number)}\n")


def state() -> dict[str, str]:
    return dict(line.split("=", 1) for line in (FOLDER / "state").read_text().splitlines())


def wait_until(holds: str) -> None:
    key, value = holds.split("=")
    while state().get(key) != value:
        time.sleep(0.01)


def cpu_s(process: int) -> float:
    words = Path(f"/proc/{process}/stat").read_text().split()
    return (int(words[13]) + int(words[14])) / os.sysconf("SC_CLK_TCK")


Path("/proc/sys/net/ipv6/conf/default/disable_ipv6").write_text("1")
ports = [(f"host{port}", f"air{port}", mac(port).hex(":")) for port in range(STATIONS + 1)]
program = subprocess.Popen([PROGRAM, FOLDER, *(word for port in ports for word in port)])
while not (FOLDER / "state").exists():
    time.sleep(0.01)
for _, tap, address in ports:
    subprocess.run(["ip", "link", "set", "dev", tap, "address", address, "up"], check=True)
order(f"set {{}} queue_frames={FRAMES}")
wait_until("number=1")
lines: list[str] = []
reader = threading.Thread(target=lambda: lines.extend((FOLDER / "truth").open()))
reader.start()
order("record {}")
wait_until("recording=1")
senders = []
for _, tap, address in ports[1:]:
    sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    sender.bind((tap, 0))
    frame = mac(0) + bytes.fromhex(address.replace(":", "")) + LOCAL_EXPERIMENTAL
    senders.append((sender, frame.ljust(LENGTH_BYTES, b"\0")))
for _batch in range(FRAMES // BATCH):
    for sender, frame in senders:
        for _frame in range(BATCH):
            sender.send(frame)
    time.sleep(0.01)
began, used_s = time.monotonic(), cpu_s(program.pid)
time.sleep(SECONDS)
used = (cpu_s(program.pid) - used_s) / (time.monotonic() - began)
program.terminate()
program.wait()
reader.join()
print("".join(lines) + f"{used:.3f}")
