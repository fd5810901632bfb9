{#- Start recording the states that a device of a lab reports. -#}
launch {{ name }} {{ limit_s }} {{ output }} cat {{ "/mnt/devices/%s/truth" | format(link) }}
a_number=0
while IFS='=' read -r a_key a_value; do [ "$a_key" != number ] || a_number=$((a_value + 1)); done <{{ "/mnt/devices/%s/state" | format(link) }}
echo "record $a_number" >{{ "/mnt/devices/%s/orders" | format(link) }}
