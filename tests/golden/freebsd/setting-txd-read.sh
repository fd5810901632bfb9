echo txd.em1"=$(descriptors em1)"
s_name=dev.$(driver em1).$(unit em1).iflib.override_ntxds
echo txd.em1".kenv=$(kenv -q "$s_name" || echo unset)"
echo txd.em2"=$(descriptors em2)"
s_name=dev.$(driver em2).$(unit em2).iflib.override_ntxds
echo txd.em2".kenv=$(kenv -q "$s_name" || echo unset)"
