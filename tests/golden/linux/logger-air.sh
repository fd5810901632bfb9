# ---- start
launch src-air 26 src-air.csv cat /mnt/devices/air/truth
a_number=0
while IFS='=' read -r a_key a_value; do [ "$a_key" != number ] || a_number=$((a_value + 1)); done </mnt/devices/air/state
echo "record $a_number" >/mnt/devices/air/orders
# ---- ready
await 10 has_line /mnt/devices/air/state recording=1 || fail "the simulated device of link "air" does not report its state"
