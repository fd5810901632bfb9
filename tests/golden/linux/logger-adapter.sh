# ---- start
launch src-adapter 26 src-adapter.csv cat /mnt/devices/powerline/truth
a_number=0
while IFS='=' read -r a_key a_value; do [ "$a_key" != number ] || a_number=$((a_value + 1)); done </mnt/devices/powerline/state
echo "record $a_number" >/mnt/devices/powerline/orders
# ---- ready
await 10 has_line /mnt/devices/powerline/state recording=1 || fail "the simulated device of link "powerline" does not report its state"
