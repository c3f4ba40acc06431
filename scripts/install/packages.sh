#!/usr/bin/env bash
# Installs packages of Debian (or Ubuntu), and starts none of the services in them. Quick if all are there already.
#   packages.sh CALLER PACKAGE…      CALLER begins each line that is printed
set -euo pipefail
caller=$1
packages=("${@:2}")

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Any nginx will do.
is_there() {
  is_installed "$1" || { [ "$1" = nginx-light ] && command -v /usr/sbin/nginx >/dev/null; }
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "$caller: expected a system with apt (Debian, Ubuntu); install these by other means: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_there "$package" || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "$caller: all ${#packages[@]} packages are there"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "$caller: expected to run as root, or sudo" >&2; exit 1; }
  as_root=(sudo)
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300 "$@"
}

# A service that is installed is started, and would take a port; there is nothing to start here.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod +x "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi

log=$(mktemp)
install_missing() {
  apt update >"$log" 2>&1 && apt install --yes --no-install-recommends "${missing[@]}" >>"$log" 2>&1
}

echo "$caller: installing ${missing[*]}"
for attempt in 1 2 3 4; do
  if install_missing; then
    rm -f "$log"
    echo "$caller: done"
    exit 0
  fi
  echo "$caller: attempt $attempt failed:" >&2
  tail -n 5 "$log" >&2
  [ "$attempt" -eq 4 ] || sleep $((attempt * 5))
done
echo "$caller: could not install ${missing[*]}; all of it is in $log" >&2
exit 1
