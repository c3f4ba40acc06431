"""Reads a series at one cell of `field` and prints seconds and values as JSON: read_series.py MODE SOURCE STEPS Y X

steps   netCDF4, a request for each step
slice   netCDF4, one request; SOURCE may be a file
chunks  zarr-python, a chunk for each step
"""
import json
import sys
import time

mode, source = sys.argv[1:3]
steps, y, x = map(int, sys.argv[3:6])
if mode == "chunks":
    import zarr

    field = zarr.open_consolidated(source, mode="r")["field"]
else:
    import netCDF4

    dataset = netCDF4.Dataset(source)
    dataset.set_auto_maskandscale(False)
    field = dataset["field"]
began = time.perf_counter()
if mode == "steps":
    values = [float(field[step, y, x]) for step in range(steps)]
else:
    values = field[:steps, y, x].tolist()
print(json.dumps({"seconds": time.perf_counter() - began, "values": values}))
