"""Writes NetCDF-4 files of one day each: write_days.py FOLDER SIDE COUNT

Each has five variables of 24 chunks, deflated and shuffled, as archives of hourly data do.
"""
import sys

import netCDF4
import numpy as np

folder, side, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
y, x = np.mgrid[0:side, 0:side]
hours = np.stack([np.floor(10 * (np.sin(y / 9 + hour) + np.cos(x / 7)) + 0.5) for hour in range(24)])
packing = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, side, side), "fill_value": np.nan}
for day in range(count):
    with netCDF4.Dataset(f"{folder}/day-{day:05}.nc", "w") as file:
        for name, length in (("time", None), ("y", side), ("x", side)):
            file.createDimension(name, length)
            axis = file.createVariable(name, "f8", (name,), chunksizes=(24,) if name == "time" else None)
            axis[:] = np.arange(day * 24, day * 24 + 24) if name == "time" else np.arange(side)
        file["time"].units = "hours since 2021-01-01"
        for number in range(5):
            field = file.createVariable(f"v{number}", "f4", ("time", "y", "x"), **packing)
            field.setncatts({"units": "K", "long_name": f"variable {number}", "valid_min": 0.0})
            field[:] = hours
