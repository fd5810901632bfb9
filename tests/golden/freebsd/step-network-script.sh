network_failed() { # PREFIX PROGRAM CODE: the program's messages are in network.err, and its output cannot be trusted
  n_why=''
  while read -r n_line || [ -n "$n_line" ]; do
    case $n_line in
      'route: route has not been found' | 'ipfw: retrieving config failed: Protocol not available') return ;;
      *) n_why="$n_why: $n_line" ;;
    esac
  done <network.err
  echo "$1.unknown=$2 ended with exit code $3$n_why"
  n_output=''
}
network_interface() { # a line of ifconfig(8)
  case "${1-} ${2-}" in
    *': flags='*)
      n_line=$* n_device=''
      case $1 in em1: | em2:) n_device=${1%:}; echo "network.mtu.$n_device=${n_line##* mtu }" ;; esac ;;
    options=*) [ -z "$n_device" ] || { n_line=${1#*<}; echo "network.options.$n_device=${n_line%>}"; } ;;
  esac
}
network_route() { # a line of route(8); the MTU is the fifth number below the last heading
  case ${1-} in
    gateway: | interface:) n_text="$n_text$1 $2 " ;;
    recvpipe) n_head=yes ;;
    *) [ -z "$n_head" ] || { n_text="${n_text}mtu: $5"; n_head=; } ;;
  esac
}
network_rule() { # a line of ipfw list
  [ "$1" = "$n_number" ] || n_count=0
  n_number=$1 n_count=$((n_count + 1)); shift
  case $1 in pipe | queue | prob | fwd | divert | tee | netgraph | ngtee | nat) ;; *) return ;; esac
  case "$* " in *' em1 '* | *' em2 '*) ;; *' xmit '* | *' recv '* | *' via '*) return ;; esac
  echo "shaping.ipfw.$n_number.$n_count=$*"
}
n_device='' n_number='' n_count=0
n_output=$(ifconfig 2>network.err) || network_failed network ifconfig "$?"
each_line network_interface "$n_output"
for n_to in 172.16.11.2 fd00::2; do
  n_text='' n_head=''
  case $n_to in *:*) n_family=-inet6 ;; *) n_family=-inet ;; esac
  n_output=$(route -n get "$n_family" "$n_to" 2>network.err) || network_failed network route "$?"
  each_line network_route "$n_output"
  echo "network.route.$n_to=$n_text"
done
if command -v ipfw >/dev/null; then
  n_output=$(ipfw list 2>network.err) || network_failed shaping ipfw "$?"
  each_line network_rule "$n_output"
else
  echo "shaping.unseen=ipfw is not installed"
fi
