"""Synchronisation of the clock. Arguments: INTERVAL_S READY."""

import _signal as signal
import ctypes
import posix
import sys
import time

interval_ns, ready = int(float(sys.argv[1]) * 1e9), sys.argv[2]
libc = ctypes.CDLL(None)


class Timex(ctypes.Structure):  # linux/timex.h
    _fields_ = (
        [("modes", ctypes.c_uint)]
        + [(name, ctypes.c_long) for name in ("offset", "freq", "maxerror", "esterror")]
        + [("status", ctypes.c_int)]
        + [
            (name, ctypes.c_long)
            for name in (
                "constant",
                "precision",
                "tolerance",
                "seconds",
                "fraction",
                "tick",
                "ppsfreq",
                "jitter",
            )
        ]
        + [("shift", ctypes.c_int)]
        + [(name, ctypes.c_long) for name in ("stabil", "jitcnt", "calcnt", "errcnt", "stbcnt")]
        + [("tai", ctypes.c_int), ("unused", ctypes.c_int * 11)]
    )


def write(source, **values):
    now = time.time_ns()
    for name, value in values.items():
        sys.stdout.write(f"{now},{source},{name},{value}\n")


def kernel():
    raw = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    write("kernel", realtime_minus_raw_ns=time.time_ns() - raw)
    timex = Timex()
    state = libc.adjtimex(ctypes.byref(timex))
    if state < 0:
        return
    unit = 1e-9 if timex.status & 0x2000 else 1e-6  # STA_NANO
    write(
        "adjtimex",
        state=state,
        synchronised=int(not timex.status & 0x40),
        status=f"0x{timex.status:04x}",
        offset_s="%.9f" % (timex.offset * unit),
        frequency_ppm="%.4f" % (timex.freq / 65536),
        tick_us=timex.tick,
        max_error_s="%.6f" % (timex.maxerror / 1e6),
        estimated_error_s="%.6f" % (timex.esterror / 1e6),
        tai_s=timex.tai,
    )


def answer(*command):
    for folder in ("/usr/bin/", "/usr/sbin/", "/usr/local/bin/"):
        if posix.access(folder + command[0], 1):
            break
    else:
        return ""
    reader, writer = posix.pipe()
    null = posix.open("/dev/null", posix.O_RDWR)
    child = posix.posix_spawn(
        folder + command[0],
        list(command),
        dict(posix.environ),
        file_actions=[
            (posix.POSIX_SPAWN_DUP2, null, 0),
            (posix.POSIX_SPAWN_DUP2, writer, 1),
            (posix.POSIX_SPAWN_DUP2, null, 2),
        ],
    )
    posix.close(writer)
    with open(reader, "rb") as output:
        text = output.read().decode("utf-8", "replace")
    return text if posix.waitpid(child, 0)[1] == 0 else ""


def daemons():
    chrony = answer("chronyc", "-c", "-n", "tracking").strip().split(",")
    if len(chrony) >= 14:
        names = (
            "reference_id",
            "source",
            "stratum",
            "reference_time_s",
            "system_offset_s",
            "last_offset_s",
            "rms_offset_s",
            "frequency_ppm",
            "residual_ppm",
            "skew_ppm",
            "root_delay_s",
            "root_dispersion_s",
            "update_interval_s",
            "leap",
        )
        write("chrony", **dict(zip(names, chrony, strict=False)))
    for line in answer("ntpq", "-pn").splitlines():
        words = line[1:].split()
        if line[:1] in ("*", "o") and len(words) >= 10:  # the selected peer; ntpq prints ms
            delay, offset, jitter = (float(word) / 1e3 for word in words[7:10])
            write(
                "ntp",
                source=words[0],
                stratum=words[2],
                delay_s=f"{delay:.6f}",
                offset_s=f"{offset:.6f}",
                jitter_s=f"{jitter:.6f}",
            )
    if posix.access("/run/systemd/system", 0):
        told = dict(line.split("=", 1) for line in answer("timedatectl", "show").splitlines() if "=" in line)
        write(
            "timedatectl",
            **{
                name: told[key]
                for name, key in (("ntp", "NTP"), ("synchronised", "NTPSynchronized"))
                if key in told
            },
        )


sys.stdout.write("t_ns,source,quantity,value\n")
kernel()
daemons()
# Blocked also while the last readings are taken: timeout(1) sends the signal twice.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
tell_ready(ready)  # noqa: F821 - ready.py precedes this file
while not signal.sigtimedwait([signal.SIGTERM], interval_ns / 1e9):
    kernel()
kernel()
daemons()
sys.stdout.flush()
