now_ns() {
  n_file=$(mktemp /tmp/samovar-clock.XXXXXXXX) || return 1
  n_time=$(stat -f %Fm "$n_file"); rm -f "$n_file"
  echo "${n_time%.*}${n_time#*.}"
}
# instants FILE...: print when each was last written, `FILE SECONDS`.
instants() { stat -f '%N %Fm' "$@"; }
