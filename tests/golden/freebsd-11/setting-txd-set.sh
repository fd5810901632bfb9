loader() { # NAME [VALUE]: set its only line in /boot/loader.conf, or remove it, atomically
  { [ ! -e /boot/loader.conf ] || grep -v "^[[:space:]]*$1[[:space:]]*=" /boot/loader.conf; [ $# -lt 2 ] || echo "$1=\"$2\""; } >/boot/loader.conf.samovar
  mv /boot/loader.conf.samovar /boot/loader.conf
}
loader "hw.$(driver em1).txd" 256 || fail "/boot/loader.conf could not be written"
loader "hw.$(driver em2).txd" 256 || fail "/boot/loader.conf could not be written"
