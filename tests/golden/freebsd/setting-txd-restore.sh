s_name=dev.$(driver em1).$(unit em1).iflib.override_ntxds
kenv -q -u "$s_name" >/dev/null
( reattach em1 )
