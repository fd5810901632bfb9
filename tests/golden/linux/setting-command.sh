# ---- read
printf 'command.state=%s\n' "$(sh -c 'ls /tmp/x' 2>&1 | tr '\n' ' ')"
# ---- set
: >"${dir%/*}/command.ran"
sh -c 'echo '"'"'a b'"'"' >/tmp/x' >&2 || fail "command.run failed with exit code $?"
# ---- wanted
# ---- restore
if sh -c 'rm /tmp/x' >&2; then
  rm -f "${dir%/*}/command.ran"
else
  c_code=$?
  [ ! -e "${dir%/*}/command.ran" ] || echo "command.undo=failed with exit code $c_code"
fi
