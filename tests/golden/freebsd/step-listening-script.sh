# listening PORT, listening_udp PORT: whether a program listens on it. Wide columns of sockstat(1) may run into each other,
# so only the protocol and the port are compared.
listening() { bound "$1" tcp; }
listening_udp() { bound "$1" udp; }
bound() { # PORT PROTOCOL
  case $(sockstat -4 -6 -l -p "$1") in *[[:space:]]"$2"[46]*:"$1"[[:space:]]*) return 0 ;; esac
  return 1
}

# timeout(1) of FreeBSD starts its program before it begins to wait for the program's end. If the program ends in
# between, timeout notices the end only at the time limit. A second signal makes timeout check.
await_bounded() { # PID
  ( sleep 1; kill -CHLD "$1" ) >/dev/null 2>&1 &
  wait "$1"
}

# kernel_values OID...: read all these OIDs with one program. kernel_value OID then sets `value`, or returns 1 if this
# kernel has no such OID. `cached` returns 1 for an OID that was not read in this way; kernel_value then reads it alone.
k_text=
kernel_values() {
  k_text="
$(sysctl "$@" 2>/dev/null)
"
}
cached() {
  case $k_text in
    *"
$1: "*) value=${k_text#*"
$1: "}; value=${value%%"
"*} ;;
    *) return 1 ;;
  esac
}
kernel_value() { cached "$1" || value=$(sysctl -n "$1" 2>/dev/null); }
# knob OID [NAME]: print its value for the controller; absent if this kernel does not have it.
knob() {
  if kernel_value "$1"; then echo "${2:-$1}=$value"; else echo "${2:-$1}=absent"; fi
}
# turn OID VALUE...: set the OIDs that have other values, with one program, in this order. If sysctl(8) sets a value
# other than the requested one, the difference is noticed when the value is read back.
turn() {
  s_left=$#
  while [ "$s_left" -gt 0 ]; do
    kernel_value "$1" || fail "this kernel has no $1"
    if [ "$value" != "$2" ]; then
      set -- "$@" "$1=$2"
      k_text="
$1: $2$k_text"
    fi
    shift 2; s_left=$((s_left - 2))
  done
  [ $# -eq 0 ] || sysctl "$@" >/dev/null || fail "the kernel refused $*"
}
# back OID VALUE...: restore these values; an error does not prevent other values from being restored.
back() {
  s_left=$#
  while [ "$s_left" -gt 0 ]; do
    [ "$2" = absent ] || { kernel_value "$1" && [ "$value" = "$2" ]; } || set -- "$@" "$1=$2"
    shift 2; s_left=$((s_left - 2))
  done
  [ $# -eq 0 ] || sysctl "$@" >/dev/null
}

# module NAME FILE: load a kernel module. kldstat(8) lists files, and many modules are built in, so they are searched by
# module name. Without -n, kldload(8) fails for a loaded module, and its message only refers to dmesg(8).
module() {
  kldstat -q -m "$1" || kldload -n "$2" || not_loaded "module $2"
}
not_loaded() { dmesg | tail -n 2 >&2; fail "the kernel $1 cannot be loaded"; }

# firewall: load ipfw and dummynet. ipfw, which dummynet of FreeBSD 13 loads as well, denies everything when it is
# loaded. So it is loaded first, while a variable in the kernel's environment makes it accept everything by default; a
# rule then does the same, and if the rule fails, ipfw is unloaded.
firewall() {
  ! cached net.inet.ip.fw.enable || ! cached net.inet.ip.dummynet.expire || return 0 # both are loaded
  kldstat -q -m ipfw || {
    kenv net.inet.ip.fw.default_to_accept=1 >/dev/null 2>&1
    kldload -n ipfw && { ipfw -q add 65534 allow ip from any to any || kldunload ipfw; }
    kenv -q -u net.inet.ip.fw.default_to_accept >/dev/null 2>&1
  }
  kldstat -q -m dummynet || ! kldstat -q -m ipfw || kldload -n dummynet
}
# firewall_on: enable ipfw. If it was loaded but disabled, its rules may lock the controller out.
firewall_on() {
  kernel_value net.inet.ip.fw.enable && [ "$value" != 1 ] || return 0
  case $(ipfw list) in *' allow ip from any to any'*) turn net.inet.ip.fw.enable 1 ;;
    *) fail "ipfw is loaded but disabled, and none of its rules passes all packets; add the rule 'allow ip from any to any'" ;;
  esac
}

# active INTERFACE: whether its link is up; a wireless interface then has the status `associated` or `running`. An
# interface without a status is taken to be up.
active() {
  case $(ifconfig "$1" 2>/dev/null) in
    *'status: active'* | *'status: associated'* | *'status: running'*) return 0 ;;
    *'status: '* | '') return 1 ;;
  esac
}
inactive() { ! active "$1"; }
# restarted INTERFACE: note that a change has restarted its card; many cards then lose their link for a time.
# links_settled: wait until the links of all noted interfaces are up again; it runs once, after all settings. A link goes
# down shortly after the change, if at all; drivers check their links about twice a second. settled INTERFACE waits at once.
s_restarted=
restarted() { s_restarted="$s_restarted $1"; }
links_settled() {
  s_pending=$s_restarted
  [ -z "$s_pending" ] || await 2 dropped
  for s_name in $s_restarted; do
    await 30 active "$s_name" || fail "$s_name has no link 30 s after it was changed"
  done
  s_restarted=
}
settled() { restarted "$1"; links_settled; }
dropped() { # all these links have been down since they were noted
  s_still=
  for s_name in $s_pending; do ! active "$s_name" || s_still="$s_still $s_name"; done
  s_pending=$s_still
  [ -z "$s_pending" ]
}

# driver INTERFACE, unit INTERFACE: print a part of a name such as em1: the driver `em`, or the unit `1`.
driver() { echo "${1%%[0-9]*}"; }
unit() { echo "${1##*[!0-9]}"; }
# capable CAPABILITY TEXT: whether TEXT, which ifconfig(8) has printed about an interface, shows that a capability such as
# TSO4 or LRO is enabled.
capable() {
  s_options=${2#*options=} s_capability=$1
  s_options=${s_options%%>*}
  case ",${s_options#*<}," in *,"$s_capability",*) return 0 ;; esac
  return 1
}
# merging INTERFACE TEXT: whether received segments are merged (LRO). em, igb and igc merge in software, which leaves the
# packets of a protocol alone while the host forwards it (tcp_lro.c): on a router, LRO has no effect.
merging() {
  capable LRO "$2" || return 1
  case $(driver "$1") in em | igb | igc) ;; *) return 0 ;; esac
  kernel_value net.inet.ip.forwarding && [ "$value" = 1 ] || return 0
  case $2 in
    *'inet6 '[!f]* | *'inet6 f'[!e]*) kernel_value net.inet6.ip6.forwarding && [ "$value" != 1 ] ;;
    *) return 1 ;;
  esac
}
# mtu INTERFACE: print its MTU as netstat(1) does.
mtu() {
  netstat -n -I "$1" | while read -r s_name s_mtu s_network _; do
    case $s_network in '<Link'*) echo "$s_mtu"; break ;; esac
  done
}
# path_mtu ADDRESS: print the MTU of the route to it, the fifth number below the last heading of route(8).
path_mtu() {
  case $1 in *:*) set -- "$1" -inet6 ;; *) set -- "$1" -inet ;; esac
  route -n get "$2" "$1" | while read -r s_head _; do
    [ "$s_head" != recvpipe ] || { read -r _ _ _ _ s_mtu _ && echo "$s_mtu"; }
  done
}
# segment ADDRESS: print the maximum segment size towards it, to which TCP rounds its buffers.
segment() {
  s_mtu=$(path_mtu "$1")
  case $1 in *:*) echo "$((${s_mtu:-1500} - 60))" ;; *) echo "$((${s_mtu:-1500} - 40))" ;; esac
}

# window_unit: print the unit of advertised windows, from the window scale that TCP derives from the largest socket
# buffer.
window_unit() {
  s_unit=1
  kernel_value kern.ipc.maxsockbuf
  while [ $((65535 * s_unit)) -lt "$value" ] && [ "$s_unit" -lt 16384 ]; do s_unit=$((s_unit * 2)); done
  echo "$s_unit"
}
# offered SPACE SEGMENT UNIT: print the window that TCP advertises for a receive buffer. TCP rounds a buffer of more than
# a segment up to whole segments (tcp_mss()). Since FreeBSD 13, TCP also rounds the advertised window up to the unit.
offered() {
  s_space=$1
  [ "$s_space" -le "$2" ] || s_space=$(((s_space + $2 - 1) / $2 * $2))
  echo "$(((s_space + $3 - 1) / $3 * $3))"
}
# space_for WINDOW SEGMENT UNIT: print the largest receive buffer of whole segments whose window does not exceed this
# one.
space_for() {
  s_space=$1
  if [ "$1" -gt "$2" ]; then s_space=$(($1 / $2 * $2)); fi
  while [ "$(offered "$s_space" "$2" "$3")" -gt "$1" ]; do
    if [ "$s_space" -gt "$2" ]; then s_space=$((s_space - $2)); else s_space=$(($1 / $3 * $3)); fi
  done
  [ "$s_space" -gt 0 ] && echo "$s_space"
}

# descriptors INTERFACE: print the length of its transmit ring, as the driver reported at its last attach.
descriptors() {
  { cat /var/run/dmesg.boot 2>/dev/null; dmesg; } | {
    s_count=none
    while read -r s_name s_word s_number s_kind s_rest; do
      case "$s_name $s_word $s_kind $s_rest" in "$1: Using TX descriptors"*) s_count=$s_number ;; esac
    done
    echo "$s_count"
  }
}
# reattach INTERFACE: detach and attach its driver, and restore what only the interface stored: MTU, LRO, flow control,
# addresses, `up`, permanent neighbours, static routes; then wait for its link.
reattach() {
  s_mtu=$(mtu "$1") s_fc=$(sysctl -n "dev.$(driver "$1").$(unit "$1").fc" 2>/dev/null)
  s_addresses=$(ifconfig "$1") s_routes=$(netstat -rn) s_neighbours=$(arp -an -i "$1")
  if capable LRO "$s_addresses"; then s_lro=lro; else s_lro=-lro; fi
  devctl disable "$1" && devctl enable "$1" || fail "$1 could not be reattached"
  await 20 ifconfig "$1" >/dev/null || fail "$1 did not come back"
  ifconfig "$1" mtu "$s_mtu"
  if capable LRO "$(ifconfig "$1")"; then s_now=lro; else s_now=-lro; fi
  [ "$s_lro" = "$s_now" ] || ifconfig "$1" "$s_lro"
  [ -z "$s_fc" ] || sysctl "dev.$(driver "$1").$(unit "$1").fc=$s_fc" >/dev/null
  ifconfig "$1" up
  addresses_back "$1" <<EOF
$s_addresses
EOF
  neighbours_back <<EOF
$s_neighbours
EOF
  settled "$1"
  routes_back "$1" <<EOF
$s_routes
EOF
}
addresses_back() { # INTERFACE, with the output of ifconfig(8) on standard input
  while read -r s_family s_address s_word s_mask s_rest; do
    case $s_family.$s_address in
      inet.*) ifconfig "$1" inet "$s_address" netmask "$s_mask" alias ;;
      inet6.fe80:*) ;;
      inet6.*) ifconfig "$1" inet6 "$s_address" prefixlen "$s_mask" alias ;;
    esac || fail "the address $s_address of $1 could not be restored"
  done
}
neighbours_back() { # with the output of arp -an on standard input; own addresses are listed too
  while read -r _ s_address _ s_ether _ _ s_state _; do
    s_address=${s_address#?}; s_address=${s_address%?} # without its brackets
    case $s_state.$s_addresses in permanent.*"inet $s_address "*) ;; permanent.*) arp -s "$s_address" "$s_ether" >/dev/null ;; esac
  done
}
routes_back() { # INTERFACE, with the output of netstat -rn on standard input
  while read -r s_to s_gateway s_flags s_name _; do
    [ "$s_name" = "$1" ] || continue
    case $s_to in fe80:* | *%*) continue ;; *:*) s_family=-inet6 ;; *) s_family=-inet ;; esac
    case $s_gateway in *:*) s_family=-inet6 ;; esac
    case $s_flags in
      *G*H*S*) route -q add "$s_family" -host "$s_to" "$s_gateway" ;;
      *G*S*) route -q add "$s_family" -net "$s_to" "$s_gateway" ;;
      *) continue ;;
    esac >/dev/null 2>&1 || route -n get "$s_family" "${s_to%/*}" >/dev/null || fail "the route to $s_to could not be restored"
  done
}
