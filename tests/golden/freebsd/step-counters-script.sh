set -- $(sysctl -n kern.cp_times)
c_cpu=0
while [ $# -ge 5 ]; do
  echo "cpu.$c_cpu=$(($1 + $2 + $3 + $4)) $5"
  c_cpu=$((c_cpu + 1))
  shift 5
done
set -- $(sysctl -n kern.boottime)
[ $# -lt 7 ] || printf 'clock=%s%06d000 0 0\n' "${4%,}" "$7"
