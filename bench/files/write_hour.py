"""Writes NetCDF-4 files of one hour each: write_hour.py FOLDER SIDE COUNT

FOLDER/N.nc has the field of N, and a time of -12345.0, whose eight bytes are replaced in copies of the file.
FOLDER/N.chunk is its one stored chunk of the field.
"""
import sys

import h5py
import netCDF4
import numpy as np

folder, side, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(count):
    path = f"{folder}/{number}.nc"
    with netCDF4.Dataset(path, "w") as file:
        for name, length in (("time", None), ("y", side), ("x", side)):
            file.createDimension(name, length)
            axis = file.createVariable(name, "f8", (name,), chunksizes=(1,) if name == "time" else None)
            axis[:] = np.array([-12345.0]) if name == "time" else np.arange(side)
        file["time"].units = "hours since 2021-01-01"
        options = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, side, side), "fill_value": np.nan}
        field = file.createVariable("field", "f4", ("time", "y", "x"), **options)
        field.units = "K"
        y, x = np.mgrid[0:side, 0:side]
        field[0] = number * 1000 + np.floor(10 * (np.sin(y / 9 + number) + np.cos(x / 7)) + 0.5)
    with h5py.File(path) as file, open(f"{folder}/{number}.chunk", "wb") as target:
        target.write(file["field"].id.read_direct_chunk((0, 0, 0))[1])
