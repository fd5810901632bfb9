"""What a packet capture says for the verdict: packets and bytes of each conversation, in one quick pass.

Packets are measured with care in R; here only what a verdict needs is looked at, and no packet is kept.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

BLOCK_BYTES = 1 << 20
LARGEST_PACKET_BYTES = 262_144
GLOBAL_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
BYTE_ORDERS = {
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xd4\xc3\xb2\xa1": "<",
    b"\xa1\xb2\x3c\x4d": ">",
    b"\xa1\xb2\xc3\xd4": ">",
}
"""By the first four bytes: nanoseconds and microseconds, of either byte order (pcap-savefile(5))."""
ETHERNET_HEADER_BYTES = 14
PLAIN_IPV4 = b"\x08\x00\x45"
"""An Ethernet type of IPv4, and an IPv4 header without options: RFC 894, RFC 791."""
ICMP, TCP, UDP = 1, 6, 17
SYN = 2
Key = tuple[int, bytes]
"""A protocol, and source and destination address and port as they stand in the packet."""


@dataclass(slots=True)
class OneWay:
    """One direction of one conversation.

    `frame_bytes` and `largest_bytes` are of whole frames as they were on the wire. `window` is the largest
    window field but that of SYNs; `mss_bytes` and `scale` are options of the SYN, None where it had none, and
    `syn` says whether there was one.
    """

    protocol: int
    source: str
    destination: str
    source_port: int
    destination_port: int
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
        """What is left without headers, taken to be as long as those of the first packet with data."""
        return max(0, self.frame_bytes - self.packets * self.header_bytes)

    @property
    def window_bytes(self) -> int:
        """The largest window that this end offered, in bytes: RFC 7323, section 2.3."""
        return self.window << (self.scale or 0)

    def __str__(self) -> str:
        """Name the conversation as tcpdump does."""
        kind = {ICMP: "ICMP", TCP: "TCP", UDP: "UDP"}.get(self.protocol, f"IP protocol {self.protocol}")
        ports = (
            (f":{self.source_port}", f":{self.destination_port}") if self.protocol in (TCP, UDP) else ("", "")
        )
        return f"{kind} {self.source}{ports[0]} > {self.destination}{ports[1]}"


@dataclass(slots=True)
class Capture:
    """What was seen in a capture.

    `whole` is False where reading stopped at the most packets that were to be read, `torn` where the file
    ends within a packet. `other_packets` have no IPv4: those of neighbours, of switches, of IPv6.
    """

    ways: dict[Key, OneWay] = field(default_factory=dict)
    packets: int = 0
    other_packets: int = 0
    whole: bool = True
    torn: bool = False

    def __iter__(self) -> Iterator[OneWay]:
        return iter(self.ways.values())


def read_capture(file: Path, most_packets: int) -> Capture:
    """Read a capture of Ethernet frames, compressed by gzip.

    Raises OSError, and ValueError for what is no such file.
    """
    with file.open("rb") as source:
        try:
            return _read(_unpacked(iter(lambda: source.read(BLOCK_BYTES), b"")), most_packets)
        except zlib.error as error:
            raise ValueError(f"no gzip: {error}") from error
        except IndexError as error:
            raise ValueError("a packet that is cut off in its headers") from error


def _unpacked(blocks: Iterable[bytes]) -> Iterator[bytes]:
    unpack = zlib.decompressobj(31)
    for block in blocks:
        while block:
            yield unpack.decompress(block, BLOCK_BYTES)
            block = unpack.unconsumed_tail
    yield unpack.flush()


def _read(blocks: Iterator[bytes], most_packets: int) -> Capture:
    found = Capture()
    data = b""
    record = None
    for block in blocks:
        data += block
        if record is None:
            if len(data) < GLOBAL_HEADER_BYTES:
                continue
            record = struct.Struct(f"{_byte_order(data)}II")
            data = data[GLOBAL_HEADER_BYTES:]
        data = data[_take(found, data, record, most_packets) :]
        if not found.whole:
            return found
    if record is None:
        raise ValueError("no capture: it ends before its first packet could begin")
    found.torn = bool(data)
    return found


def _byte_order(data: bytes) -> str:
    order = BYTE_ORDERS.get(data[:4])
    if order is None:
        raise ValueError("no capture as tcpdump -w writes it")
    (link,) = struct.unpack_from(f"{order}I", data, 20)
    if link & 0xFFFF != 1:
        raise ValueError(f"a capture of link type {link & 0xFFFF}; accepted: 1, Ethernet")
    return order


def _take(found: Capture, data: bytes, record: struct.Struct, most_packets: int) -> int:
    """Count every whole packet of a piece; return where the first begins that is not whole."""
    at, end, packets, ways = 0, len(data), found.packets, found.ways
    sizes = record.unpack_from
    while at + RECORD_HEADER_BYTES <= end and packets < most_packets:
        kept, size = sizes(data, at + 8)
        frame = at + RECORD_HEADER_BYTES
        if frame + kept > end:
            if kept > LARGEST_PACKET_BYTES:
                raise ValueError(f"a packet of {kept} bytes; accepted: {LARGEST_PACKET_BYTES} at most")
            break
        at = frame + kept
        packets += 1
        if data[frame + 12 : frame + 15] == PLAIN_IPV4:
            _count(ways, data, frame, size)
        else:
            found.other_packets += 1
    found.packets, found.whole = packets, packets < most_packets
    return at


def _count(ways: dict[Key, OneWay], data: bytes, frame: int, size: int) -> None:
    """Count one packet. What stands here is done for every packet of a trial, a million in about a second."""
    protocol = data[frame + 23]
    key = (TCP, data[frame + 26 : frame + 38]) if protocol == TCP else _key(protocol, data, frame)
    way = ways.get(key)
    if way is None:
        way = ways[key] = _begin(key)
    way.packets += 1
    way.frame_bytes += size
    if size > way.largest_bytes:
        way.largest_bytes = size
        way.header_bytes = _header_bytes(protocol, data, frame)
    if data[frame + 22] not in way.ttls:
        way.ttls.add(data[frame + 22])
    if protocol == TCP:
        window = data[frame + 48] << 8 | data[frame + 49]
        if window > way.window or data[frame + 47] & SYN:
            _take_window(way, data, frame, window)


def _key(protocol: int, data: bytes, frame: int) -> Key:
    """Leave out what is no port: of fragments but the first, and of protocols without."""
    later = (data[frame + 20] & 0x1F) or data[frame + 21]
    ports = protocol == UDP and not later
    return protocol, data[frame + 26 : frame + 38] if ports else data[frame + 26 : frame + 34] + bytes(4)


def _begin(key: Key) -> OneWay:
    protocol, ends = key
    source, destination = (".".join(map(str, ends[at : at + 4])) for at in (0, 4))
    return OneWay(protocol, source, destination, *struct.unpack_from(">HH", ends, 8))


def _header_bytes(protocol: int, data: bytes, frame: int) -> int:
    of_ip = ETHERNET_HEADER_BYTES + 20
    return of_ip + {TCP: (data[frame + 46] >> 4) * 4, UDP: 8, ICMP: 8}.get(protocol, 0)


def _take_window(way: OneWay, data: bytes, frame: int, window: int) -> None:
    """Take a window, or the options of a SYN, whose own window is not scaled: RFC 7323, section 2.2."""
    if not data[frame + 47] & SYN:
        way.window = window
        return
    way.syn = True
    at, end = frame + 54, frame + 34 + (data[frame + 46] >> 4) * 4
    while at + 1 < end and data[at]:
        kind, length = data[at], 1 if data[at] == 1 else max(2, data[at + 1])
        if kind == 2:
            way.mss_bytes = int.from_bytes(data[at + 2 : at + 4], "big")
        elif kind == 3:
            way.scale = data[at + 2]
        at += length
