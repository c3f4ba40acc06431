#!/bin/sh
# zpublish and Node.js in one file. They are unpacked once for each version and user, then run from there.
set -eu
cache=${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}
if [ -z "$cache" ]; then
  echo "zpublish: expected the variable HOME or XDG_CACHE_HOME, which say where to unpack" >&2
  exit 1
fi
program=$cache/zpublish/program-@VERSION@
if [ ! -x "$program/node" ]; then
  # Beside its place and then moved there: a start that is interrupted leaves nothing that looks whole, and of two at once one wins.
  mkdir -p "$cache/zpublish"
  unpacked=$(mktemp -d "$program.XXXXXX")
  tail -n +@LINE@ "$0" | tar -xzf - -C "$unpacked"
  chmod 755 "$unpacked"
  mv -T "$unpacked" "$program" 2>/dev/null || rm -rf "$unpacked"
fi
exec "$program/node" --max-semi-space-size=2 "$program/dist/src/zpublish.cjs" "$@"
