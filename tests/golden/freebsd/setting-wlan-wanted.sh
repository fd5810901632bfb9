wlan.rates=5.5
