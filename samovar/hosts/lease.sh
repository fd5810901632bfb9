# The lease of a host: a file that names its holder, one for each machine; POSIX sh only (dash, FreeBSD's sh).
#
# $path is the file. $token identifies the claimant, and $text describes it. $folder and $name identify its shell on this
# host. $over is the token of a lease that it may take over. A lease is written as $path.TOKEN, then linked to $path, which is atomic.
# Each heartbeat appends a line, so that the host's own clock tells the age of the lease.
umask 022
own=$path.$token
holder() { key= value=; if [ -f "$path" ]; then read -r key value <"$path"; fi; printf %s "$value"; }
# ln alone would link into a folder, or follow a link to one.
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
# Only one claimant can take over a lease: the one that creates the folder with its name.
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
# Print the lease, or `free` if there is none or it is released meanwhile.
look() { if [ -f "$path" ] && held=$(describe 2>/dev/null) && [ -f "$path" ]; then echo "$held"; else echo free; fi; }
release() {
  if [ "$(holder)" = "$token" ]; then rm -f "$path"; fi
  rm -f "$own" "$folder/lease"
  echo free
}
