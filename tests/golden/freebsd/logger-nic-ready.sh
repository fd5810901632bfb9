await 5 exists src-nic.ready || { cat src-nic.err >&2; fail "the sampler of counters does not run on "em1; }
