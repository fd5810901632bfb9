media() { # INTERFACE
  ifconfig "$1" | while read -r m_key m_kind m_rest; do [ "$m_key" != media: ] || echo "$m_rest"; done
}
s_media=$(media em1)
s_asked=${s_media%%(*}
echo speed.em1"=${s_asked% }"
s_became=${s_media##*(}
echo speed.em1".link=${s_became%)}"
s_media=$(media em2)
s_asked=${s_media%%(*}
echo speed.em2"=${s_asked% }"
s_became=${s_media##*(}
echo speed.em2".link=${s_became%)}"
