sysctl -n net.inet.tcp.cc.available
for file in /boot/kernel/cc_*.ko; do
  file=${file##*/cc_}
  case $file in '*'*) ;; *) echo "${file%%.*}" ;; esac
done
