await 5 exists src-queue.ready || { cat src-queue.err >&2; fail "the queue sampler does not run on "em1; }
