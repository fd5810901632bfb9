{#- Shell functions that send orders to a device of a lab. -#}
state_of() { # KEY...: print the values of these keys in the state of the device
  while IFS='=' read -r s_key s_value; do
    for s_wanted in "$@"; do [ "$s_wanted" != "$s_key" ] || echo "$s_value"; done
  done <{{ "/mnt/devices/%s/state" | format(link) }}
}
obeyed() { [ "$(state_of number)" = "$1" ]; }
order() { # WORD KEY=VALUE...
  o_word=$1; shift
  o_number=$(($(state_of number) + 1))
  echo "$o_word $o_number $*" >{{ "/mnt/devices/%s/orders" | format(link) }}
  await 5 obeyed "$o_number" || fail "the simulated device of link "{{ link }}" does not answer"
  o_why=$(state_of refused)
  [ -z "$o_why" ] || fail "the simulated device of link "{{ link }}" refuses $o_why"
}
