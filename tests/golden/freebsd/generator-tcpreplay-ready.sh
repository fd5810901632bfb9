await 5 listening_udp 5001 || { cat bulk-client.err >&2; fail "nothing takes packets on UDP port "5001; }
