"""Compares the first and the last step of a variable that two servers have with the file: compare_chunks.py FILE VARIABLE URL…"""
import sys

import numpy as np
import xarray as xr

path, name, *urls = sys.argv[1:]
with xr.open_dataset(path, engine="h5netcdf", decode_cf=False) as file:
    for url in urls:
        served = xr.open_zarr(url, decode_cf=False, consolidated=True)
        for step in (0, file[name].shape[0] - 1):
            expected, received = file[name][step].values, served[name][step].values
            if expected.dtype != received.dtype or expected.tobytes() != received.tobytes():
                sys.exit(f"{url}: step {step} of {name} differs from the file")
print("equal")
