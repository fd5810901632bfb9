# The lease of a host: a file that says who holds it, at one place per machine; POSIX sh only (dash, FreeBSD's sh).
#
# $path is that place, $token the one who asks, $text what it has to say for itself, $folder and $name its shell here,
# $over a lease that it may take over. A lease is written under a name of its own, $path.TOKEN, then linked to its place,
# which either succeeds whole or fails. It grows by a line with each sign of life, so that its age is the host's to tell.
umask 022
own=$path.$token
holder() { key= value=; if [ -f "$path" ]; then read -r key value <"$path"; fi; printf %s "$value"; }
# ln would link into a folder, or follow a link to one.
link() { if [ -e "$path" ] || [ -h "$path" ]; then return 1; fi; ln "$own" "$path"; }
describe() {
  shell=
  while read -r key value; do
    if [ -n "$key" ]; then printf 'lease %s %s\n' "$key" "$value"; fi
    if [ "$key" = shell ]; then shell=${value##* }; fi
  done <"$path"
  if [ -n "$shell" ] && ps axww | grep "sh -s [s]${shell#s}" >/dev/null; then echo 'lease alive yes'; fi
  if [ -O "$path" ]; then echo 'lease mine yes'; fi
  printf 'lease now %s\nlease heard %s\n' "$(date +%s)" "$(date -r "$path" +%s)"
}
# Only one can ever take over a lease, whoever else has seen it too: who makes the folder of its name.
take_over() {
  if ! mkdir "$path.$over.taken"; then return 1; fi
  if [ "$(holder)" = "$over" ]; then rm -f "$path" "$path.$over"; fi
  link
  rmdir "$path.$over.taken"
}
claim() {
  if [ ! -f "$own" ]; then (set -C; printf 'token %s\n%ssince %s\n' "$token" "$text" "$(date +%s)" >"$own") || exit 73; fi
  if [ "$(holder)" != "$token" ]; then link 2>/dev/null || { [ -n "$over" ] && take_over; }; fi
  if [ "$(holder)" = "$token" ]; then
    printf 'shell %s %s\n' "$folder" "$name" >>"$own" && printf '%s\n' "$own" >"$folder/lease" && echo held
  else
    rm -f "$own"
    if [ -f "$path" ]; then describe; else ls -ld "$path" >&2; exit 73; fi
  fi
}
# A lease that is given back meanwhile is none.
look() { if [ -f "$path" ] && held=$(describe 2>/dev/null) && [ -f "$path" ]; then echo "$held"; else echo free; fi; }
release() {
  if [ "$(holder)" = "$token" ]; then rm -f "$path"; fi
  rm -f "$own" "$folder/lease"
}
