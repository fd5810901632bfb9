"""Write a capture of a minute of a telephone call, G.711 over RTP: `call.py FILE`. Always the same bytes."""

import struct
import sys

FRAMES, EVERY_US, PAYLOAD = 3000, 20_000, 160
SILENCE = bytes([0xFF]) * PAYLOAD
ADDRESSES = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))


def frame(number):
    rtp = (
        struct.pack("!BBHII", 0x80, 0, number, number * PAYLOAD, 1) + bytes([0xFF]) * PAYLOAD
    )  # 0xff: silence
    udp = struct.pack("!HHHH", 4000, 4000, 8 + len(rtp), 0) + rtp
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number, 0, 64, 17, 0) + b"".join(ADDRESSES)
    return bytes(12) + b"\x08\x00" + ip + udp


with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number in range(FRAMES):
        data = frame(number)
        file.write(struct.pack("<IIII", *divmod(number * EVERY_US, 1_000_000), len(data), len(data)) + data)
