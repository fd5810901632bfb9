# ---- read
while IFS='=' read -r a_key a_value; do
  case $a_key in
    number | refused | recording | lost_lines | unwritten) ;;
    *) echo air.air."$a_key=$a_value" ;;
  esac
done </mnt/devices/air/state
# ---- set
state_of() { # KEY...: print the values of these keys in the state of the device
  while IFS='=' read -r s_key s_value; do
    for s_wanted in "$@"; do [ "$s_wanted" != "$s_key" ] || echo "$s_value"; done
  done </mnt/devices/air/state
}
obeyed() { [ "$(state_of number)" = "$1" ]; }
order() { # WORD KEY=VALUE...
  o_word=$1; shift
  o_number=$(($(state_of number) + 1))
  echo "$o_word $o_number $*" >/mnt/devices/air/orders
  await 5 obeyed "$o_number" || fail "the simulated device of link "air" does not answer"
  o_why=$(state_of refused)
  [ -z "$o_why" ] || fail "the simulated device of link "air" refuses $o_why"
}
order set standard=1 snr_db@0=50 snr_db@1=21.5
# ---- wanted
air.air.standard=1
air.air.snr_db@0=50
air.air.snr_db@1=21.5
# ---- restore
state_of() { # KEY...: print the values of these keys in the state of the device
  while IFS='=' read -r s_key s_value; do
    for s_wanted in "$@"; do [ "$s_wanted" != "$s_key" ] || echo "$s_value"; done
  done </mnt/devices/air/state
}
obeyed() { [ "$(state_of number)" = "$1" ]; }
order() { # WORD KEY=VALUE...
  o_word=$1; shift
  o_number=$(($(state_of number) + 1))
  echo "$o_word $o_number $*" >/mnt/devices/air/orders
  await 5 obeyed "$o_number" || fail "the simulated device of link "air" does not answer"
  o_why=$(state_of refused)
  [ -z "$o_why" ] || fail "the simulated device of link "air" refuses $o_why"
}
order set standard=0 snr_db@0=50
