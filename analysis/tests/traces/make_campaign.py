"""Make a campaign folder with real traffic of this kernel: three network namespaces, a bottleneck, captures.

For tests only: `python3 make_campaign.py SPEC.json OUT_FOLDER` as root. SPEC holds `experiment`, `parts`,
`figures`, `tables` and `trials` (part, treatment, replicate, rate_bps, buffer_packets, rtt_s, duration_s).
No trace is synthetic: tcpdump, sock_diag and rtnetlink recorded them during the traffic.
"""

import ctypes
import gzip
import hashlib
import json
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

CC = {"newreno": "reno"}
TCP_HEADER = (
    "t_ns,src,sport,dst,dport,state,cc,cwnd_packets,ssthresh_packets,srtt_us,rttvar_us,min_rtt_us,rto_us,"
    "snd_mss_bytes,rcv_mss_bytes,unacked_packets,lost_packets,retrans_packets,total_retrans_packets,"
    "bytes_acked,bytes_sent,bytes_retrans,snd_wnd_bytes,rcv_space_bytes,delivery_rate_bps,ca_state"
)
QUEUE_HEADER = (
    "t_ns,interface,qdisc,handle,parent,backlog_bytes,backlog_packets,sent_bytes,sent_packets,"
    "drops,overlimits"
)


def sh(text, check=True):
    return subprocess.run(["sh", "-c", text], check=check, capture_output=True, text=True).stdout


def enter(name):
    with open(f"/var/run/netns/{name}") as f:
        if ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), f"setns {name}")


def attributes(data):
    at = 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        if length < 4:
            return
        yield kind & 0x3FFF, data[at + 4 : at + length]
        at += (length + 3) & ~3


def messages(sock):
    while True:
        data = sock.recv(1 << 17)
        at = 0
        while at + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, at)
            if kind in (2, 3):
                return
            yield data[at + 16 : at + length]
            at += (length + 3) & ~3


def dotted(raw):
    return ".".join(str(b) for b in raw[:4])


def reader(form, data):
    return lambda at: struct.unpack_from(form, data, at)[0]


def tcp_rows(sock, ports):
    request = struct.pack("=BBBBI", socket.AF_INET, socket.IPPROTO_TCP, 2 | 8, 0, 0x0FFE - 0x400) + bytes(48)
    sock.send(struct.pack("=IHHII", 16 + len(request), 20, 0x301, 1, 0) + request)
    t_ns = time.time_ns()
    for m in messages(sock):
        sport, dport = struct.unpack_from("!HH", m, 4)
        if dport not in ports:
            continue
        found = dict(attributes(m[72:]))
        i = found.get(2)
        if not i:
            continue
        u32, u64 = reader("=I", i), reader("=Q", i)
        cc = found.get(4, b"").rstrip(b"\0").decode()
        yield (
            t_ns,
            dotted(m[8:12]),
            sport,
            dotted(m[24:28]),
            dport,
            m[1],
            cc,
            u32(80),
            u32(76),
            u32(68),
            u32(72),
            u32(148),
            u32(8),
            u32(16),
            u32(20),
            u32(24),
            u32(32),
            u32(36),
            u32(100),
            u64(120),
            u64(200) if len(i) >= 216 else "",
            u64(208) if len(i) >= 216 else "",
            u32(228) if len(i) >= 232 else "",
            u32(96),
            u64(160) * 8,
            i[1],
        )


def queue_rows(sock, interface, index):
    sock.send(struct.pack("=IHHII", 36, 38, 0x301, 1, 0) + struct.pack("=BBHiIII", 0, 0, 0, index, 0, 0, 0))
    t_ns = time.time_ns()
    for m in messages(sock):
        if struct.unpack_from("=i", m, 4)[0] != index:
            continue
        handle, parent = struct.unpack_from("=II", m, 8)
        found = dict(attributes(m[20:]))
        stats = dict(attributes(found[7]))
        sent_bytes, sent_packets = struct.unpack_from("=QI", stats[1])
        qlen, backlog, drops, _, over = struct.unpack_from("=IIIII", stats[3])
        yield (
            t_ns,
            interface,
            found[1].rstrip(b"\0").decode(),
            f"{handle >> 16:x}:",
            "root" if parent == 0xFFFFFFFF else f"{parent >> 16:x}:{parent & 0xFFFF:x}",
            backlog,
            qlen,
            sent_bytes,
            sent_packets,
            drops,
            over,
        )


def sample(namespace, protocol, rows, interval_s, stop, out):
    enter(namespace)
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    due = time.monotonic()
    while not stop.is_set():
        out.extend(rows(sock))
        due += interval_s
        stop.wait(max(0.0, due - time.monotonic()))


def build(trial):
    mtu, rate = trial["mtu"], trial["rate_bps"]
    lines = [
        "for n in src rtr dst; do ip netns del $n 2>/dev/null; ip netns add $n; ip -n $n link set lo up; done",
        "ip link add sv0 netns src type veth peer name sv1 netns rtr",
        "ip link add dv0 netns dst type veth peer name dv1 netns rtr",
    ]
    for name, device, final, address in [
        ("src", "sv0", "eth1", "172.16.10.2/24"),
        ("rtr", "sv1", "eth1", "172.16.10.1/24"),
        ("rtr", "dv1", "eth2", "172.16.11.1/24"),
        ("dst", "dv0", "eth1", "172.16.11.2/24"),
    ]:
        lines += [
            f"ip -n {name} link set {device} name {final} mtu {mtu}",
            f"ip -n {name} addr add {address} dev {final}",
            f"ip -n {name} link set {final} up",
            f"ip netns exec {name} ethtool -K {final} tso off gso off gro off lro off >/dev/null 2>&1",
        ]
    lines += [
        "ip -n src route add default via 172.16.10.1",
        "ip -n dst route add default via 172.16.11.1",
        "ip netns exec rtr sysctl -qw net.ipv4.ip_forward=1",
        f"ip netns exec src sysctl -qw net.ipv4.tcp_congestion_control={CC.get(trial['cc'], trial['cc'])} "
        "net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_wmem='4096 20000000 20000000'",
        f"ip netns exec dst sysctl -qw net.ipv4.tcp_rmem='4096 {2 * trial['rwnd']} {2 * trial['rwnd']}'",
        f"ip netns exec rtr tc qdisc add dev eth2 root handle 1: tbf rate {rate}bit burst {2 * (mtu + 14)} limit 50000000",
        f"ip netns exec rtr tc qdisc add dev eth2 parent 1:1 handle 10: pfifo limit {trial['buffer_packets']}",
    ]
    if trial["rtt_s"] > 0:
        half = int(trial["rtt_s"] * 1e6 / 2)
        lines += [
            "ip netns exec rtr ip link add ifb0 type ifb; ip -n rtr link set ifb0 up",
            f"ip netns exec rtr tc qdisc add dev ifb0 root netem delay {half}us limit 100000",
            "ip netns exec rtr tc qdisc add dev eth1 handle ffff: ingress",
            "ip netns exec rtr tc filter add dev eth1 parent ffff: protocol all u32 match u32 0 0 "
            "action mirred egress redirect dev ifb0",
            f"ip netns exec rtr tc qdisc add dev eth1 root netem delay {half}us limit 100000",
        ]
    for line in lines:
        sh(line, check=False)
    return int(sh("ip netns exec rtr cat /sys/class/net/eth2/ifindex"))


def write_csv(path, header, rows):
    with gzip.GzipFile(path, "wb", mtime=0) as f:
        f.write((header + "\n" + "".join(",".join(map(str, r)) + "\n" for r in rows)).encode())


def run(trial, folder, traces):
    index = build(trial)
    stop, tcp, queue = threading.Event(), [], []
    dumps = [
        subprocess.Popen(
            [
                "ip",
                "netns",
                "exec",
                h,
                "tcpdump",
                "-i",
                "eth1",
                "-s",
                str(trial["snaplen"]),
                "-B",
                "32768",
                "--time-stamp-precision=nano",
                "-w",
                f"{traces}/{h}-eth1.pcap",
                "tcp port 5001",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        for h in ("src", "dst")
    ]
    server = subprocess.Popen(
        ["ip", "netns", "exec", "dst", "iperf3", "-s", "-p", "5001", "-1"], stdout=subprocess.DEVNULL
    )
    for d in dumps:
        d.stderr.readline()
    while not sh("ip netns exec dst ss -Hltn sport = 5001", check=False):
        time.sleep(0.02)
    threads = [
        threading.Thread(target=sample, args=("src", 4, lambda s: tcp_rows(s, {5001}), 0.010, stop, tcp)),
        threading.Thread(
            target=sample, args=("rtr", 0, lambda s: queue_rows(s, "eth2", index), 0.005, stop, queue)
        ),
    ]
    for t in threads:
        t.start()
    t_start = time.time()
    client = subprocess.run(
        [
            "ip",
            "netns",
            "exec",
            "src",
            "iperf3",
            "-c",
            "172.16.11.2",
            "-p",
            "5001",
            "-t",
            str(trial["duration_s"]),
        ],
        capture_output=True,
        text=True,
    )
    t_end = time.time()
    server.terminate()
    time.sleep(0.3)
    stop.set()
    for t in threads:
        t.join()
    errors = []
    for d in dumps:
        d.terminate()
        errors.append(d.stderr.read())
    write_csv(f"{traces}/src-tcp-info.csv.gz", TCP_HEADER, tcp)
    write_csv(f"{traces}/rtr-queue.csv.gz", QUEUE_HEADER, queue)
    sh(f"gzip -9 -n -f {traces}/*.pcap")
    sh("for n in src rtr dst; do ip netns del $n; done", check=False)
    return t_start, t_end, client, errors


def file_entry(folder, path, kind, host, interface, logger):
    data = (folder / path).read_bytes()
    return {
        "path": path,
        "kind": kind,
        "host": host,
        "interface": interface,
        "logger": logger,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }


def size(text):
    return (
        int(float(text.removesuffix("KB")) * 1000)
        if text.endswith("KB")
        else int(float(text.removesuffix("MB")) * 1e6)
    )


def plan_trial(t):
    levels = t["treatment"]
    resolved = {
        "mtu_bytes": int(levels["mtu"]),
        "duration_s": float(t["duration_s"]),
        "path": {
            "router": "rtr",
            "rtt_s": t["rtt_s"],
            "down": {
                "interface": "eth2",
                "rate_bps": t["rate_bps"],
                "delay_s": t["rtt_s"] / 2,
                "loss": 0.0,
                "aqm": "pfifo",
                "buffer_packets": t["buffer_packets"],
                "buffer_bytes": None,
            },
            "up": {"interface": "eth1", "rate_bps": None, "delay_s": t["rtt_s"] / 2},
        },
        "hosts": {
            "src": {
                "os": "linux",
                "role": "sender",
                "cc": levels["cc"],
                "rwnd_bytes": None,
                "mtu_bytes": int(levels["mtu"]),
                "txd": None,
                "interfaces": ["eth1"],
                "cc_parameters": {},
            },
            "rtr": {
                "os": "linux",
                "role": "router",
                "cc": None,
                "rwnd_bytes": None,
                "mtu_bytes": int(levels["mtu"]),
                "txd": None,
                "interfaces": ["eth1", "eth2"],
                "cc_parameters": {},
            },
            "dst": {
                "os": "linux",
                "role": "receiver",
                "cc": None,
                "rwnd_bytes": size(levels["rwnd"]),
                "mtu_bytes": int(levels["mtu"]),
                "txd": None,
                "interfaces": ["eth1"],
                "cc_parameters": {},
            },
        },
        "flows": [
            {
                "label": "bulk",
                "generator": "iperf3",
                "from": "src",
                "to": "dst",
                "from_address": "172.16.10.2",
                "to_address": "172.16.11.2",
                "port": 5001,
                "start_s": 0.0,
                "duration_s": float(t["duration_s"]),
                "size_bytes": None,
                "parameters": {},
            }
        ],
        "captures": [
            {"host": h, "interface": "eth1", "snaplen_bytes": t.get("snaplen", 96)} for h in ("src", "dst")
        ],
        "loggers": [
            {"logger": "tcp-info", "host": "src", "interface": "eth1", "interval_s": 0.01, "parameters": {}},
            {"logger": "queue", "host": "rtr", "interface": "eth2", "interval_s": 0.005, "parameters": {}},
        ],
    }
    digest = hashlib.sha256(
        json.dumps({"part": t["part"], "resolved": resolved}, sort_keys=True).encode()
    ).hexdigest()
    parts = (
        ([] if t["part"] == "main" else [t["part"]])
        + list(levels.values())
        + [f"r{t['replicate']}", digest[:6]]
    )
    return {
        "id": "-".join(parts),
        "part": t["part"],
        "treatment": levels,
        "replicate": t["replicate"],
        "block": t["replicate"],
        "resolved": resolved,
    }


def compact(trials):
    """Return trials in the form of plan.json: values, treatments (here one per trial), trials."""
    names = ["run", "path", "hosts.src", "hosts.rtr", "hosts.dst", "flows", "captures", "loggers"]
    values, groups, rows = [], {}, []
    for trial in trials:
        group = groups.setdefault(
            trial["part"],
            {
                "part": trial["part"],
                "number": 0,
                "factors": {f: [] for f in trial["treatment"]},
                "levels": {f: [] for f in trial["treatment"]},
                "resolved": {name: [] for name in names},
            },
        )
        group["number"] += 1
        for factor, level in trial["treatment"].items():
            known = group["factors"][factor]
            known += [] if level in known else [level]
            group["levels"][factor].append(known.index(level))
        for name in names:
            value = component(trial["resolved"], name)
            values += [] if value in values else [value]
            group["resolved"][name].append(values.index(value))
    begins, begin = {}, 0
    for part, group in groups.items():
        begins[part], begin = begin, begin + group["number"]
    for trial in trials:
        rows.append([trial["id"], begins[trial["part"]], trial["replicate"], trial["block"]])
        begins[trial["part"]] += 1
    return {"values": values, "treatments": list(groups.values()), "trials": rows}


def component(resolved, name):
    if name == "run":
        return {
            "mtu_bytes": resolved["mtu_bytes"],
            "duration_s": resolved["duration_s"],
            "deadline_s": resolved["duration_s"] + 15,
            "stop": None,
        }
    kind, _, host = name.partition(".")
    return resolved[kind][host] if host else resolved[kind]


def main():
    spec, out = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    trials = [plan_trial(t) for t in spec["trials"]]
    plan = {
        "schema": 2,
        "experiment": spec["experiment"],
        "title": spec["title"],
        "source": spec["source"],
        "description": spec["title"],
        "profile": "full",
        "testbed": "lab",
        "seed": 1,
        "order": "sequential",
        "parts": spec["parts"],
        "figures": spec["figures"],
        "tables": spec["tables"],
        **compact(trials),
    }
    (out / "plan.json").write_text(json.dumps(plan, indent=1))
    with open(out / "journal.jsonl", "a") as journal:
        for given, trial in zip(spec["trials"], trials, strict=True):
            folder = out / "trials" / trial["id"]
            if (folder / "manifest.json").exists():
                continue
            one_trial(given, trial, folder, journal)


def one_trial(given, trial, folder, journal):
    traces = folder / "traces"
    traces.mkdir(parents=True, exist_ok=True)
    levels = trial["treatment"]
    print(json.dumps({"event": "trial-started", "id": trial["id"]}), file=journal, flush=True)
    began = time.time()
    t_start, t_end, client, errors = run(
        {
            "mtu": int(levels["mtu"]),
            "cc": levels["cc"],
            "rwnd": size(levels["rwnd"]),
            "snaplen": given.get("snaplen", 96),
            **given,
        },
        folder,
        traces,
    )
    ended = time.time()
    drops = [
        int(next(line.split()[0] for line in e.splitlines() if "dropped by kernel" in line)) for e in errors
    ]
    good = client.returncode == 0 and drops == [0, 0]
    phases = [
        {"phase": "set", "seconds": round(t_start - began, 3)},
        {"phase": "collect", "seconds": round(ended - t_end, 3)},
    ]
    manifest = {
        "schema": 1,
        **{k: trial[k] for k in ("id", "part", "treatment", "replicate", "block")},
        "attempt": 1,
        "resolved": trial["resolved"],
        "outcome": "completed" if good else "failed",
        "verdict": "valid" if good else "invalid",
        "reasons": [] if good else [f"capture drops {drops}, the generator printed {client.stderr.strip()}"],
        "t_start_s": t_start,
        "t_end_s": t_end,
        "phases": phases,
        "overhead_s": round(sum(p["seconds"] for p in phases), 3),
        "checks": [
            {"check": "capture drops", "host": h, "requested": "0", "observed": str(d), "ok": d == 0}
            for h, d in zip(("src", "dst"), drops, strict=True)
        ],
        "files": [
            file_entry(folder, "traces/src-eth1.pcap.gz", "capture", "src", "eth1", "tcpdump"),
            file_entry(folder, "traces/dst-eth1.pcap.gz", "capture", "dst", "eth1", "tcpdump"),
            file_entry(folder, "traces/src-tcp-info.csv.gz", "logger", "src", "eth1", "tcp-info"),
            file_entry(folder, "traces/rtr-queue.csv.gz", "logger", "rtr", "eth2", "queue"),
        ],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    for p in phases:
        print(json.dumps({"event": "phase", "id": trial["id"], **p}), file=journal, flush=True)
    print(
        json.dumps(
            {
                "event": "trial-finished",
                "id": trial["id"],
                "outcome": manifest["outcome"],
                "verdict": manifest["verdict"],
                "reasons": manifest["reasons"],
                "overhead_s": manifest["overhead_s"],
            }
        ),
        file=journal,
        flush=True,
    )


if __name__ == "__main__":
    main()
