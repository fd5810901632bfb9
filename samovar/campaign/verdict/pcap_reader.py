"""Read packet captures for the verdict: packets and bytes of each stream, in one pass over the file.

Unlike the R package, which measures every packet, this reader only counts packets, which takes about 1 µs per
packet.
"""

from __future__ import annotations

import gzip
import struct
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from ipaddress import ip_address
from itertools import islice
from pathlib import Path

BLOCK_BYTES = 1 << 20
LARGEST_PACKET_BYTES = 262_144
GLOBAL_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
FORMATS = {
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
}
"""Maps the magic number of a capture to its byte order and the unit of its time stamps in ns
(pcap-savefile(5))."""
FIRST_BYTES = 42
"""The total size of the headers of Ethernet, IPv4, and UDP or ICMP."""
ETHERNET_HEADER_BYTES = 14
PLAIN_IPV4 = b"\x08\x00\x45"
"""EtherType IPv4 and the first byte of an IPv4 header without options (RFC 894, RFC 791). Frames with other
bytes here, such as ARP and IPv6, are skipped."""
SHORTEST_FRAME_BYTES = 60
"""Ethernet pads shorter frames to this size (IEEE 802.3). A network card captures received frames with their
padding, which the queues of a router do not count."""
ICMP, TCP, UDP = 1, 6, 17
SYN = 2
ECHO_REQUEST = 8
Key = tuple[int, bytes]
"""The key of a stream: the IP protocol, and the packet's bytes with addresses and ports."""


@dataclass(slots=True)
class PacketStream:
    """The packets of one protocol from one address and port to another.

    `ports` are the source port and the destination port. `frame_bytes` (total) and `largest_bytes` (largest
    frame) count whole frames without padding, even if the capture has only the beginning of each. `window` is
    the largest window field in packets other than SYNs. `syn` is True if a SYN was captured with all its
    options; `mss_bytes` and `scale` are these options, or None.
    """

    protocol: int
    source: str
    destination: str
    ports: tuple[int, int]
    packets: int = 0
    frame_bytes: int = 0
    largest_bytes: int = 0
    header_bytes: int = 0
    window: int = 0
    ttls: set[int] = field(default_factory=set)
    syn: bool = False
    mss_bytes: int | None = None
    scale: int | None = None

    @property
    def payload_bytes(self) -> int:
        """The payload in bytes, assuming that all packets have headers as long as the largest packet's."""
        return max(0, self.frame_bytes - self.packets * self.header_bytes)

    @property
    def window_bytes(self) -> int:
        """The largest receive window in bytes that the source of these packets offered (RFC 7323, 2.3)."""
        return self.window << (self.scale or 0)

    def __str__(self) -> str:
        """Return protocol, source and destination of the stream in tcpdump's notation."""
        kind = {ICMP: "ICMP", TCP: "TCP", UDP: "UDP"}.get(self.protocol, f"IP protocol {self.protocol}")
        source, destination = (f":{port}" if self.protocol in (TCP, UDP) else "" for port in self.ports)
        return f"{kind} {self.source}{source} > {self.destination}{destination}"


@dataclass(slots=True)
class CaptureSummary:
    """The streams of a capture. If the capture could not be read, `error` is the reason.

    `whole` is False if reading stopped at the packet limit; `torn` is True if the file ends within a packet.
    """

    streams: dict[Key, PacketStream] = field(default_factory=dict)
    packets: int = 0
    whole: bool = True
    torn: bool = False
    error: str = ""

    def __iter__(self) -> Iterator[PacketStream]:
        return iter(self.streams.values())


def read_capture(file: Path, most_packets: int) -> CaptureSummary:
    """Return a summary of the first `most_packets` packets of a gzip-compressed capture of Ethernet frames.

    Raises ValueError if the file is not such a capture. Raises OSError, EOFError or zlib.error if it cannot
    be read or unpacked.
    """
    capture = CaptureSummary()
    try:
        for _, size, data in _records(file):
            if data is None:
                capture.torn = True
                break
            if capture.packets == most_packets:
                capture.whole = False
                break
            capture.packets += 1
            if data[12:15] == PLAIN_IPV4:
                _count(capture.streams, data, size)
    except (IndexError, struct.error) as error:
        raise ValueError("a packet is cut off within its headers") from error
    return capture


def bytes_by_second(file: Path, destinations: Iterable[str], header_bytes: int) -> list[int]:
    """Return the bytes of the IPv4 packets to the addresses `destinations` in each second of a capture.

    `header_bytes` are added to the length of each IP packet. The first and the last second that have such
    packets are left out, because the capture may cover them only in part. Raises the same errors as
    read_capture().
    """
    wanted, found = {ip_address(one).packed for one in destinations}, Counter[int]()
    for t_ns, data in packets_of(file):
        if data[12:15] == PLAIN_IPV4 and data[30:34] in wanted:
            found[t_ns // 1_000_000_000] += int.from_bytes(data[16:18], "big") + header_bytes
    return [found[second] for second in range(min(found) + 1, max(found))] if found else []


@dataclass
class SentPackets:
    """Captured packets in the order of the capture: time in ns since the epoch, and payload in bytes."""

    t_ns: array[int] = field(default_factory=lambda: array("q"))
    payload_bytes: array[int] = field(default_factory=lambda: array("L"))


def read_sent_packets(file: Path, keys: Collection[Key], most_packets: int) -> SentPackets:
    """Return the UDP packets and ICMP echo requests that belong to streams with these keys.

    Only the first `most_packets` of the capture are read. A fragmented packet counts once, with its whole
    payload. Raises the same errors as read_capture().
    """
    sent = SentPackets()
    for t_ns, data in islice(packets_of(file), most_packets):
        if len(data) < FIRST_BYTES or data[12:15] != PLAIN_IPV4 or data[20] & 0x1F or data[21]:
            continue
        protocol = data[23]
        if (protocol, data[26:38]) in keys if protocol == UDP else _is_request(data, keys):
            sent.t_ns.append(t_ns)
            length = data[38:40] if protocol == UDP else data[16:18]
            headers_bytes = 8 if protocol == UDP else 28
            sent.payload_bytes.append(max(0, int.from_bytes(length, "big") - headers_bytes))
    return sent


def packets_of(file: Path) -> Iterator[tuple[int, bytes]]:
    """Yield each whole packet of a capture: its time in ns since the epoch, and its captured bytes.

    Raises the same errors as read_capture().
    """
    return ((t_ns, data) for t_ns, _, data in _records(file) if data is not None)


def _records(file: Path) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield each packet of a capture: time in ns since the epoch, size on the wire, and captured bytes.

    If the capture ends within a packet, the captured bytes of this packet are None.
    """
    with gzip.open(file, "rb") as unpacked, BufferedReader(unpacked, BLOCK_BYTES) as source:
        byte_order, unit_ns = _format(source.read(GLOBAL_HEADER_BYTES))
        record = struct.Struct(f"{byte_order}IIII")
        while head := source.read(RECORD_HEADER_BYTES):
            if len(head) < RECORD_HEADER_BYTES:
                yield 0, 0, None
                return
            second, fraction, kept, size = record.unpack(head)
            if kept > LARGEST_PACKET_BYTES:
                raise ValueError(f"a packet of {kept} bytes; at most {LARGEST_PACKET_BYTES} are possible")
            data = source.read(kept)
            t_ns = second * 1_000_000_000 + fraction * unit_ns
            yield t_ns, size, data if len(data) == kept else None


def snaplen_of(file: Path) -> int:
    """Return the snaplen of a capture in bytes. Raises the same errors as read_capture()."""
    with gzip.open(file, "rb") as source:
        head = source.read(GLOBAL_HEADER_BYTES)
    byte_order, _ = _format(head)
    (snaplen_bytes,) = struct.unpack_from(f"{byte_order}I", head, 16)
    return int(snaplen_bytes)


def _is_request(data: bytes, keys: Collection[Key]) -> bool:
    return data[23] == ICMP and data[34] == ECHO_REQUEST and (ICMP, data[26:34] + bytes(4)) in keys


def _format(head: bytes) -> tuple[str, int]:
    """Return byte order and time unit of a capture that has this global header."""
    if head[:4] not in FORMATS or len(head) < GLOBAL_HEADER_BYTES:
        raise ValueError("not a capture in the format of tcpdump -w")
    byte_order, unit_ns = FORMATS[head[:4]]
    (link,) = struct.unpack_from(f"{byte_order}I", head, 20)
    if link & 0xFFFF != 1:
        raise ValueError(f"a capture of link type {link & 0xFFFF}; it must be 1, Ethernet")
    return byte_order, unit_ns


def _count(streams: dict[Key, PacketStream], data: bytes, size: int) -> None:
    """Add one packet, with the captured bytes `data`, to the counts of its stream.

    This function runs for every captured packet, and must be fast.
    """
    if size == SHORTEST_FRAME_BYTES:
        size = min(size, ETHERNET_HEADER_BYTES + (data[16] << 8 | data[17]))
    protocol = data[23]
    key = (TCP, data[26:38]) if protocol == TCP else _key(protocol, data)
    stream = streams.get(key)
    if stream is None:
        source, destination = (".".join(map(str, key[1][at : at + 4])) for at in (0, 4))
        ports = struct.unpack_from(">HH", key[1], 8)
        stream = streams[key] = PacketStream(protocol, source, destination, ports)
    stream.packets += 1
    stream.frame_bytes += size
    if size > stream.largest_bytes:
        stream.largest_bytes = size
        transport_bytes = (data[46] >> 4) * 4 if protocol == TCP else {UDP: 8, ICMP: 8}.get(protocol, 0)
        stream.header_bytes = ETHERNET_HEADER_BYTES + 20 + transport_bytes
    if data[22] not in stream.ttls:
        stream.ttls.add(data[22])
    if protocol == TCP:
        window = data[48] << 8 | data[49]
        if window > stream.window or data[47] & SYN:
            _read_window(stream, data, window)


def _key(protocol: int, data: bytes) -> Key:
    """Return the key of a packet's stream, for a packet that is not TCP.

    The ports are 0 for fragments other than the first, and for protocols other than UDP.
    """
    is_later_fragment = (data[20] & 0x1F) or data[21]
    if protocol == UDP and not is_later_fragment:
        return protocol, data[26:38]
    return protocol, data[26:34] + bytes(4)


def _read_window(stream: PacketStream, packet: bytes, window: int) -> None:
    """Update a stream from one packet: its window, or for a SYN, its options.

    The window of a SYN is ignored, because it is never scaled (RFC 7323, section 2.2). A SYN is ignored if
    its options were not captured completely.
    """
    if not packet[47] & SYN:
        stream.window = window
        return
    at, end = 54, 34 + (packet[46] >> 4) * 4
    if end > len(packet):
        return
    stream.syn = True
    while at + 1 < end and packet[at]:
        kind, length = packet[at], 1 if packet[at] == 1 else max(2, packet[at + 1])
        if kind == 2:
            stream.mss_bytes = int.from_bytes(packet[at + 2 : at + 4], "big")
        elif kind == 3:
            stream.scale = packet[at + 2]
        at += length
