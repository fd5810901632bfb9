# ---- read
printf 'command.state=%s\n' "$(sh -c 'ls /tmp/x' 2>&1 | tr '\n' ' ')"
# ---- set
sh -c 'echo '"'"'a b'"'"' >/tmp/x' >&2 || fail "command.run failed with exit code $?"
# ---- wanted
# ---- restore
sh -c 'rm /tmp/x' >&2 || echo "command.undo=failed with exit code $?"
