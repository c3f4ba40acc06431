#!/usr/bin/env bash
# Makes a root of another Debian beside this system's own packages: the tests run its clients by chroot. About a minute and 850 MB,
# once; made again if the list of packages changes. Needs root and Debian's apt sources.
#   client-root.sh          Debian 13, for the Zarr clients of today
#   client-root.sh forky    Debian 14, for a GDAL that knows the codecs of Zarr v3, and for clients of STAC and JSON-LD
set -euo pipefail

suite=${1:-trixie}
options=()
case $suite in
  trixie)
    root=${ZPUBLISH_TEST_ROOT:-/var/cache/zpublish/trixie}
    packages=python3-zarr,python3-xarray,python3-numcodecs,python3-fsspec,python3-aiohttp,python3-requests
    packages+=,python3-dask,python3-gdal,gdal-bin,python3-h5netcdf,python3-h5py,python3-netcdf4,python3-scipy,python3-owslib
    ;;
  forky)
    root=${ZPUBLISH_TEST_NEXT_ROOT:-/var/cache/zpublish/forky}
    packages=python3-gdal,gdal-bin,python3-numpy,python3-pystac,python3-pystac-client,stac-validator,python3-rdflib
    # Testing is signed for a week, which a mirror may be behind.
    options=(--aptopt='Acquire::Check-Valid-Until "false"')
    ;;
esac
# Says that the root is whole, and with which packages.
marker=$root/.zpublish-clients

skip() { echo "client-root: no root of $suite, so its clients are not tested: $*" >&2; exit 0; }

if [ "$(cat "$marker" 2>/dev/null)" = "$packages" ]; then
  echo "client-root: $root is there"
  exit 0
fi
[ "$(id -u)" -eq 0 ] || skip "expected to run as root, since chroot needs it"
# The mirror that this system is configured with.
codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
  awk -v suite="$codename" '$2 == suite && $3 == "main" && !found++ { print $1 }')
[ "$(. /etc/os-release && echo "$ID")" = debian ] && [ -n "$mirror" ] || skip "expected Debian, with apt sources"

if [ -e "$root" ] && [ ! -e "$marker" ]; then
  echo "client-root: expected nothing in $root, or a root that was made by this script" >&2
  exit 1
fi
# Those of other numbers are what interrupted runs left.
rm -rf "$root" "$root".unfinished.*
unfinished=$root.unfinished.$$
log=$(mktemp)
mkdir -p "$(dirname "$root")"
echo "client-root: making $root"
for attempt in 1 2 3; do
  if mmdebstrap --mode=root --variant=apt --include="$packages" --aptopt='Acquire::Retries "3"' "${options[@]}" \
    --dpkgopt=force-unsafe-io "$suite" "$unfinished" "$mirror" >"$log" 2>&1; then
    echo "$packages" >"$unfinished/${marker##*/}"
    mv "$unfinished" "$root"
    rm -f "$log"
    echo "client-root: done"
    exit 0
  fi
  echo "client-root: attempt $attempt failed:" >&2
  tail -n 5 "$log" >&2
  rm -rf "$unfinished"
done
echo "client-root: could not make $root; all of it is in $log" >&2
exit 1
