[ 256 -gt 0 ] && [ $((256 & (256 - 1))) -eq 0 ] || fail 256" transmit descriptors are not a power of two, and the driver would take its default"
s_name=dev.$(driver em1).$(unit em1).iflib.override_ntxds
sysctl -n "$s_name" >/dev/null 2>&1 || fail em1" has no transmit ring that can be set: no $s_name"
kenv "$s_name="256 >/dev/null || fail "the kernel's environment refused $s_name="256
reattach em1
