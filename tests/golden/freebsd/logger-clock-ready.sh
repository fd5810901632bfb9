await 5 exists src-clock.ready || { cat src-clock.err >&2; fail "the sampler of the clock does not run"; }
