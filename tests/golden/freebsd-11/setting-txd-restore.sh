loader() {
  { [ ! -e /boot/loader.conf ] || grep -v "^[[:space:]]*$1[[:space:]]*=" /boot/loader.conf; [ $# -lt 2 ] || echo "$1=\"$2\""; } >/boot/loader.conf.samovar
  mv /boot/loader.conf.samovar /boot/loader.conf
}
loader "hw.$(driver em1).txd"
loader "hw.$(driver em2).txd" 1024
