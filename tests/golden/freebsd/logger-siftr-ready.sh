await 5 exists src-siftr.ready || { cat src-siftr.err >&2; fail "SIFTR could not be enabled"; }
