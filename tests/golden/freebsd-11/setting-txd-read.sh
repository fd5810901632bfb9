s_name=hw.$(driver em1).txd
s_value=$(sysctl -n "$s_name" 2>/dev/null) || s_value=$(kenv -q "$s_name") || s_value=default
echo txd.em1"=$s_value"
s_value='unset'
[ ! -e /boot/loader.conf ] || while IFS='= ' read -r s_key s_rest; do
  [ "$s_key" != "$s_name" ] || { s_rest=${s_rest#\"}; s_value=${s_rest%%\"*}; }
done </boot/loader.conf
echo planned.txd.em1"=$s_value"
s_name=hw.$(driver em2).txd
s_value=$(sysctl -n "$s_name" 2>/dev/null) || s_value=$(kenv -q "$s_name") || s_value=default
echo txd.em2"=$s_value"
s_value='unset'
[ ! -e /boot/loader.conf ] || while IFS='= ' read -r s_key s_rest; do
  [ "$s_key" != "$s_name" ] || { s_rest=${s_rest#\"}; s_value=${s_rest%%\"*}; }
done </boot/loader.conf
echo planned.txd.em2"=$s_value"
