# sampled COMMAND...: call the function `sample` of the caller after every `interval` seconds, until SIGTERM. COMMAND
# reads the output of `sample`, and must flush each row, because timeout(1) kills a sampler that takes too long to end.
sampled() {
  trap ': >"$name.stop"' TERM
  {
    trap : TERM
    sample
    : >"$name.ready"
    until [ -e "$name.stop" ]; do sleep "$interval"; sample; done
  } | ( trap "" TERM; exec "$@" ) &
  wait "$!"; wait "$!"
  exit 0
}
