await 5 exists src-cpu.ready || { cat src-cpu.err >&2; fail "the sampler of CPU times does not run"; }
