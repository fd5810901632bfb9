# next_hop FROM TO: set `device` to the outgoing interface, `own` to its hardware address and `remote` to that of the next hop.
# The route does not depend on the source address. ping's -W is in milliseconds here, -t in seconds.
next_hop() {
  hop=$2 device='' own='' remote=''
  h_route=$(route -n get -inet "$2")
  while read -r h_word h_value _; do
    case $h_word in gateway:) hop=$h_value ;; interface:) device=$h_value ;; esac
  done <<EOF
$h_route
EOF
  [ -n "$device" ] || fail "no route leads to $2"
  ping -n -c 1 -t 2 "$hop" >/dev/null || fail "the next hop $hop does not answer"
  h_interface=$(ifconfig "$device")
  while read -r h_word h_value _; do
    [ "$h_word" != ether ] || own=$h_value
  done <<EOF
$h_interface
EOF
  h_known=$(arp -na -i "$device")
  while read -r _ h_word _ h_value _; do
    case $h_word.$h_value in "($hop)."*:*:*:*:*:*) remote=$h_value ;; esac
  done <<EOF
$h_known
EOF
  [ -n "$own" ] && [ -n "$remote" ] || fail "the next hop $hop has no hardware address"
}
capture=''
if [ -z "$capture" ]; then
  capture=bulk-client.call.pcap
  python3 -IS -c '"""Write a capture of a minute of a telephone call, G.711 over RTP: `call.py FILE LENGTH`.

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
' "$capture" 172 || fail "no capture could be made"
fi
next_hop 172.16.10.2 172.16.11.2
tcprewrite --infile="$capture" --outfile=bulk-client.replay.pcap --srcipmap=0.0.0.0/0:172.16.10.2/32 --dstipmap=0.0.0.0/0:172.16.11.2/32 \
  --portmap=0-65535:5001 --enet-smac="$own" --enet-dmac="$remote" --fixcsum || fail "tcprewrite refused $capture"
echo "$device" >bulk-client.device
