await 5 has_line src-tcpdump.err 'listening on' || { cat src-tcpdump.err >&2; fail "tcpdump does not listen on "em1; }
