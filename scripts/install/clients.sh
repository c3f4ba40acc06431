#!/usr/bin/env bash
# Installs the clients that the tests read with, from Debian (or Ubuntu), and makes a Debian 13 root with newer ones
# (client-root.sh). Quick if everything is there already.
set -euo pipefail
here=$(dirname "${BASH_SOURCE[0]}")

packages=(
  python3-xarray python3-zarr python3-numcodecs python3-fsspec python3-aiohttp python3-requests
  python3-msgpack python3-dask python3-fastapi python3-uvicorn gdal-bin python3-gdal
  python3-h5netcdf python3-h5py python3-netcdf4 python3-rasterio python3-rioxarray python3-scipy python3-tifffile
  libtiff-tools python3-owslib python3-qgis python3-mapproxy
  netcdf-bin nco cdo ncview ferret-vis grads octave-netcdf r-cran-ncdf4 libdap-bin xvfb xauth imagemagick
  chromium nginx-light haproxy wrk
  systemd prometheus python3-yaml python3-fusepy fuse3 libatomic1
  mmdebstrap
)

"$here/packages.sh" install/clients "${packages[@]}"
"$here/client-root.sh"
exec "$here/client-root.sh" forky
