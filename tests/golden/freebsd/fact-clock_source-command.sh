if told=$(chronyc -c -n tracking); then echo chrony; echo "$told"
elif told=$(ntpq -n -p); then echo ntp; echo "$told"
fi
