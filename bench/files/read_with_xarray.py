"""Reads a whole variable of a local file with xarray and h5netcdf: read_with_xarray.py FILE VARIABLE. Prints seconds and bytes as JSON."""
import json
import sys
import time

import xarray as xr

began = time.perf_counter()
with xr.open_dataset(sys.argv[1], engine="h5netcdf", decode_cf=False) as dataset:
    values = dataset[sys.argv[2]].values
print(json.dumps({"seconds": time.perf_counter() - began, "bytes": values.nbytes}))
