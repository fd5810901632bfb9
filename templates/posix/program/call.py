"""Write a capture of a minute of a telephone call, G.711 over RTP: `call.py FILE LENGTH`.

LENGTH is the payload of a packet in bytes. The capture is the same every time.
"""

import struct
import sys

FRAMES, EVERY_US, RTP_BYTES = 3000, 20_000, 12
SOUND_BYTES = int(sys.argv[2]) - RTP_BYTES
if SOUND_BYTES < 1:
    sys.exit(f"{sys.argv[2]} bytes hold no sound; expected more than {RTP_BYTES}")
ADDRESSES = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))


def frame(number):
    rtp = (
        struct.pack("!BBHII", 0x80, 0, number, number * SOUND_BYTES, 1) + bytes([0xFF]) * SOUND_BYTES
    )  # 0xff: silence
    udp = struct.pack("!HHHH", 4000, 4000, 8 + len(rtp), 0) + rtp
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), number, 0, 64, 17, 0) + b"".join(ADDRESSES)
    return bytes(12) + b"\x08\x00" + ip + udp


with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number in range(FRAMES):
        data = frame(number)
        file.write(struct.pack("<IIII", *divmod(number * EVERY_US, 1_000_000), len(data), len(data)) + data)
