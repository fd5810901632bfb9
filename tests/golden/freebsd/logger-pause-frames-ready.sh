await 5 exists src-pause-frames.ready || { cat src-pause-frames.err >&2; fail "PAUSE frames cannot be watched on "em1; }
