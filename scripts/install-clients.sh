#!/usr/bin/env bash
# Installs the clients that the tests read with, from Debian (or Ubuntu), and makes a Debian 13 root with newer ones
# (client-root.sh). Quick if everything is there already.
set -euo pipefail
client_root=$(dirname "${BASH_SOURCE[0]}")/client-root.sh

packages=(
  python3-xarray python3-zarr python3-numcodecs python3-fsspec python3-aiohttp python3-requests
  python3-msgpack python3-dask python3-netcdf4 gdal-bin python3-gdal
  chromium nginx-light haproxy wrk
  systemd prometheus python3-yaml python3-fusepy fuse3 libatomic1
  mmdebstrap
)

is_installed() {
  [ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Any nginx will do.
is_there() {
  is_installed "$1" || { [ "$1" = nginx-light ] && command -v /usr/sbin/nginx >/dev/null; }
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "install-clients: expected a system with apt (Debian, Ubuntu); install these by other means: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_there "$package" || missing+=("$package")
done
if [ "${#missing[@]}" -eq 0 ]; then
  echo "install-clients: all ${#packages[@]} packages are there"
  exec "$client_root"
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "install-clients: expected to run as root, or sudo" >&2; exit 1; }
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

echo "install-clients: installing ${missing[*]}"
for attempt in 1 2 3 4; do
  if install_missing; then
    rm -f "$log"
    echo "install-clients: done"
    "$client_root"
    exit 0
  fi
  echo "install-clients: attempt $attempt failed:" >&2
  tail -n 5 "$log" >&2
  [ "$attempt" -eq 4 ] || sleep $((attempt * 5))
done
echo "install-clients: could not install ${missing[*]}; all of it is in $log" >&2
exit 1
