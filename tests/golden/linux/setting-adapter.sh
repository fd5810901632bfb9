# ---- read
while IFS='=' read -r a_key a_value; do
  case $a_key in
    number | refused | recording | lost_lines | *_packets | *_drops | *_unwritten) ;;
    *) echo "adapter.$a_key=$a_value" ;;
  esac
done </mnt/devices/powerline/state
# ---- set
state_of() { # KEY...: print the values of these keys in the state of the device
  while IFS='=' read -r s_key s_value; do
    for s_wanted in "$@"; do [ "$s_wanted" != "$s_key" ] || echo "$s_value"; done
  done </mnt/devices/powerline/state
}
obeyed() { [ "$(state_of number)" = "$1" ]; }
order() { # WORD KEY=VALUE...
  o_word=$1; shift
  o_number=$(($(state_of number) + 1))
  echo "$o_word $o_number $*" >/mnt/devices/powerline/orders
  await 5 obeyed "$o_number" || fail "the simulated device of link "powerline" does not answer"
  o_why=$(state_of refused)
  [ -z "$o_why" ] || fail "the simulated device of link "powerline" refuses $o_why"
}
order set rate_down_bps=40000000 buffer_down_frames=2720 simplex=1
# ---- wanted
adapter.rate_down_bps=40000000
adapter.buffer_down_frames=2720
adapter.simplex=1
# ---- restore
state_of() { # KEY...: print the values of these keys in the state of the device
  while IFS='=' read -r s_key s_value; do
    for s_wanted in "$@"; do [ "$s_wanted" != "$s_key" ] || echo "$s_value"; done
  done </mnt/devices/powerline/state
}
obeyed() { [ "$(state_of number)" = "$1" ]; }
order() { # WORD KEY=VALUE...
  o_word=$1; shift
  o_number=$(($(state_of number) + 1))
  echo "$o_word $o_number $*" >/mnt/devices/powerline/orders
  await 5 obeyed "$o_number" || fail "the simulated device of link "powerline" does not answer"
  o_why=$(state_of refused)
  [ -z "$o_why" ] || fail "the simulated device of link "powerline" refuses $o_why"
}
order set rate_down_bps=100000000 simplex=0
