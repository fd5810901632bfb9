kernel_values kern.cp_times kern.boottime
kernel_value kern.cp_times
set -- $value
c_cpu=0
while [ $# -ge 5 ]; do
  echo "cpu.$c_cpu=$(($1 + $2 + $3 + $4)) $5"
  c_cpu=$((c_cpu + 1))
  shift 5
done
kernel_value kern.boottime
set -- $value
[ $# -lt 7 ] || printf 'clock=%s%06d000 0 0\n' "${4%,}" "$7"
