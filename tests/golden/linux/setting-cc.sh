# ---- read
helper=modprobe; [ ! -e /proc/sys/kernel/modprobe ] || read -r helper </proc/sys/kernel/modprobe
[ -d /sys/module/tcp_cdg ] || root "$helper" tcp_cdg
value=absent; read -r value 2>/dev/null </sys/module/tcp_cdg/parameters/backoff_beta
case $value in Y) value=1 ;; N) value=0 ;; esac
echo cc.backoff_beta"=$value"
value=absent; read -r value 2>/dev/null </sys/module/tcp_cdg/parameters/use_shadow
case $value in Y) value=1 ;; N) value=0 ;; esac
echo cc.use_shadow"=$value"
read -r value </proc/sys/net/ipv4/tcp_congestion_control && echo "cc=$value"
# ---- set
cc=cdg
read -r offered </proc/sys/net/ipv4/tcp_available_congestion_control
read -r allowed </proc/sys/net/ipv4/tcp_allowed_congestion_control || allowed=none
helper=modprobe; [ ! -e /proc/sys/kernel/modprobe ] || read -r helper </proc/sys/kernel/modprobe
case " $offered " in *" $cc "*) ;; *) root "$helper" "tcp_$cc" || fail "this kernel does not offer the congestion control $cc; it offers: $offered" ;; esac
put() { # PARAMETER VALUE
  p_file=/sys/module/tcp_$cc/parameters/$1
  [ -e "$p_file" ] || fail "the congestion control $cc has no parameter $1; it has: $(cd "/sys/module/tcp_$cc/parameters" && echo *)"
  read -r p_now <"$p_file"
  case $p_now in Y) p_now=1 ;; N) p_now=0 ;; esac
  [ "$p_now" = "$2" ] || { can_put "$p_file" && put_in "$p_file" "$2"; } 2>/dev/null || reload "$1" "$2"
}
# A module that is reloaded must be allowed again, which only the first network namespace of a machine can do.
reload() { # PARAMETER VALUE
  { can_put /proc/sys/net/ipv4/tcp_allowed_congestion_control && root "$helper" -r "tcp_$cc" && root "$helper" "tcp_$cc" "$1=$2"; } 2>/dev/null ||
    fail "the congestion control $cc accepts $1=$2 only while its module is being loaded, and this host cannot reload the module"
}
for p_pass in 1 2; do
  put backoff_beta 512
  put use_shadow 0
done
put_in /proc/sys/net/ipv4/tcp_congestion_control "$cc" || fail "the congestion control $cc was refused; a network namespace may only choose what the machine allows: $allowed"
# ---- wanted
cc.backoff_beta=512
cc.use_shadow=0
cc=cdg
# ---- restore
put_in /proc/sys/net/ipv4/tcp_congestion_control cubic
helper=modprobe; [ ! -e /proc/sys/kernel/modprobe ] || read -r helper </proc/sys/kernel/modprobe
put() { # PARAMETER VALUE
  p_file=/sys/module/tcp_cdg/parameters/$1
  read -r p_now <"$p_file"
  case $p_now in Y) p_now=1 ;; N) p_now=0 ;; esac
  [ "$p_now" = "$2" ] || { can_put "$p_file" && put_in "$p_file" "$2"; } 2>/dev/null ||
    { root "$helper" -r tcp_cdg && root "$helper" tcp_cdg "$1=$2"; }
}
for p_pass in 1 2; do
  :
  put backoff_beta 724
  put use_shadow 1
done
