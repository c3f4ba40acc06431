"""Writes a NetCDF-4 file as archives have them, of about 100 MB if it has 900 steps: write_remote_file.py FILE STEPS"""
import sys

import netCDF4
import numpy as np

with netCDF4.Dataset(sys.argv[1], "w") as file:
    for name, length in (("time", None), ("lat", 240), ("lon", 480)):
        file.createDimension(name, length)
    for name in ("lat", "lon"):
        coordinate = file.createVariable(name, "f4", (name,))
        coordinate[:] = np.linspace(-90, 90, len(file.dimensions[name]))
        coordinate.units = "degrees"
    time = file.createVariable("time", "f8", ("time",), chunksizes=(1024,))
    options = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, 240, 480)}
    field = file.createVariable("t2m", "f4", ("time", "lat", "lon"), **options)
    rng = np.random.default_rng(7)
    # Coordinates are written as the steps are, so that metadata lie between the chunks.
    for step in range(int(sys.argv[2])):
        time[step] = step
        field[step] = rng.integers(0, 2**5, (240, 480)).astype("f4")
