now_ns() {
  : >"${0%/*}/time"
  n_time=$(stat -f %Fm "${0%/*}/time")
  echo "${n_time%.*}${n_time#*.}"
}
# instants FILE...: print when each was last written, as `FILE SECONDS`.
instants() { stat -f '%N %Fm' "$@"; }
# clock_at_boot: set b_floor and b_ceiling to bounds, in ns, of this clock's time at boot; a step moves both, because
# the kernel moves kern.boottime by as much as the clock.
clock_at_boot() {
  set -- $(sysctl -n kern.boottime)
  [ $# -ge 7 ] || return 1
  b_floor=$(printf '%s%06d000' "${4%,}" "$7")
  b_ceiling=$b_floor
}
