# ---- start
mkdir -p src-tcp-probe.tracing
launch src-tcp-probe 26 src-tcp-probe.csv unshare --mount sh -c 'mount -t tracefs tracefs "$2" && exec python3 -IS -c "$0" "$@"' '"""Report that a logger is ready; precedes the program of each logger."""

import posix


def tell_ready(name):
    """Create a file of this name, and wake the script that waits at the trial'"'"'s named pipe, if any."""
    open(name, "w").close()
    try:
        pipe = posix.open("events", posix.O_WRONLY | posix.O_NONBLOCK)
    except OSError:
        return
    posix.write(pipe, b"ready\n")
    posix.close(pipe)


"""Events of the tracepoint tcp:tcp_probe as CSV.

Arguments: READY TRACEFS NAME BUFFER_KIB PORTS ADDRESS…. PORTS is one argument, a list of ports separated by
spaces; if it is empty, all ports are traced. The ADDRESSes are those of all hosts in the trial.
"""

import _signal as signal
import _socket as socket
import posix
import sys
import time

ready, tracing, name, size = sys.argv[1:5]
ports, addresses = sys.argv[5].split(), sys.argv[6:]


def local(address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        socket.socket(family, socket.SOCK_DGRAM).bind((address, 0))
        return True
    except OSError:
        return False


def remove(folder):
    try:
        posix.rmdir(folder)
    except OSError:
        return  # it is in use


own = {address for address in addresses if local(address)}
instances = tracing + "/instances/"
for other in posix.listdir(instances):
    if other.startswith(f"samovar-{name}-"):
        remove(instances + other)  # left by a trial that was killed
instance = instances + f"samovar-{name}-{posix.getpid()}"
posix.mkdir(instance)


def put(file, text):
    with open(instance + "/" + file, "w") as f:
        f.write(text)


ended, lost, written, left = False, 0, 0, b""


def stop(*_):
    global ended
    ended = True


def fields(text):
    return dict(word.split("=", 1) for word in text.split() if "=" in word)


def endpoint(text):
    address, _, port = text.rpartition(":")
    return address.strip("[]").removeprefix("::ffff:"), port


def take(data, offset_ns):
    global left, lost, written
    *lines, left = (left + data).split(b"\n")
    for line in lines:
        head, found, text = line.decode("ascii", "replace").partition(": tcp_probe: ")
        if not found:
            if "LOST" in head:
                lost += int(head.partition("LOST")[2].split()[0])
            continue
        value = fields(text)
        (src, sport), (dst, dport) = endpoint(value["src"]), endpoint(value["dest"])
        if src in own and dst in addresses:
            seconds, _, micro = head.split()[-1].partition(".")
            row = [
                int(seconds) * 10**9 + int(micro.ljust(9, "0")) + offset_ns,
                src,
                sport,
                dst,
                dport,
                value["data_len"],
                int(value["snd_nxt"], 16),
                int(value["snd_una"], 16),
                value["snd_cwnd"],
                value["ssthresh"],
                value["snd_wnd"],
                value["srtt"],
                value["rcv_wnd"],
                value.get("sock_cookie", ""),
            ]
            sys.stdout.write(",".join(map(str, row)) + "\n")
            written += 1


def read(pipe):
    # Events have the time of the monotonic clock, whose offset to the time of day is measured repeatedly.
    try:
        data = posix.read(pipe, 1 << 16)
    except BlockingIOError:
        return False
    take(data, time.time_ns() - time.monotonic_ns())
    return bool(data)


signal.signal(signal.SIGTERM, stop)
try:
    put("trace_clock", "mono")
    put("buffer_size_kb", size)
    if ports:
        put("events/tcp/tcp_probe/filter", "||".join(f"sport=={port}||dport=={port}" for port in ports))
    sys.stdout.write(
        "t_ns,src,sport,dst,dport,data_bytes,snd_nxt,snd_una,cwnd_packets,ssthresh_packets,snd_wnd_bytes,srtt_us,"
        "rcv_wnd_bytes,cookie\n"
    )
    pipe = posix.open(instance + "/trace_pipe", posix.O_RDONLY | posix.O_NONBLOCK)
    put("events/tcp/tcp_probe/enable", "1")
    tell_ready(ready)  # noqa: F821 - ready.py precedes this file
    while not ended:
        if not read(pipe):
            time.sleep(0.02)
    put("events/tcp/tcp_probe/enable", "0")
    while read(pipe):
        pass
    sys.stdout.flush()
    posix.close(pipe)
    sys.stderr.write(f"{written} events written, {lost} lost by kernel\n")
finally:
    posix.rmdir(instance)
' src-tcp-probe.ready src-tcp-probe.tracing src-tcp-probe 8192 '5001 5002' 172.16.10.2 172.16.11.2
# ---- ready
await_ready src-tcp-probe || { cat src-tcp-probe.err >&2; fail "the tracepoint tcp:tcp_probe cannot be traced on this kernel"; }
