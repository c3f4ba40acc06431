"""Writes the files of the benchmark into a folder: write_files.py FOLDER STEPS VARIABLES CHUNKS

field.nc    one variable of STEPS chunks of 1 MiB, about 540 KB stored, shuffled and deflated
field.zarr  the same stored chunks as files of a Zarr v2 store
many.nc     VARIABLES variables, one chunk each, on the scales of three dimensions
chunks.h5   one dataset of CHUNKS small chunks, in an extensible array
tree.h5     the same in a B-tree of version 1
"""
import json
import os
import sys

import h5py
import netCDF4
import numpy as np

folder, steps, variables, chunks = sys.argv[1], *map(int, sys.argv[2:5])
SIDE = 512


def step(number, noise):
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    smooth = 280 + 20 * np.sin(y / 80 + number / 10) + 10 * np.cos(x / 60)
    return (smooth + noise).astype("f4")


def write_field():
    rng = np.random.default_rng(1)
    noise = rng.normal(0, 0.02, (SIDE, SIDE))
    with netCDF4.Dataset(f"{folder}/field.nc", "w") as file:
        for name, length in (("time", None), ("y", SIDE), ("x", SIDE)):
            file.createDimension(name, length)
        options = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, SIDE, SIDE)}
        field = file.createVariable("field", "f4", ("time", "y", "x"), **options)
        for number in range(steps):
            field[number] = step(number, np.roll(noise, number, axis=1))
    array = f"{folder}/field.zarr/field"
    os.makedirs(array)
    document = {
        "zarr_format": 2, "shape": [steps, SIDE, SIDE], "chunks": [1, SIDE, SIDE], "dtype": "<f4", "order": "C",
        "fill_value": None, "filters": [{"id": "shuffle", "elementsize": 4}], "compressor": {"id": "zlib", "level": 1},
    }
    write_json(f"{folder}/field.zarr/.zgroup", {"zarr_format": 2})
    write_json(f"{array}/.zarray", document)
    write_json(f"{array}/.zattrs", {"_ARRAY_DIMENSIONS": ["time", "y", "x"]})
    with h5py.File(f"{folder}/field.nc") as file:
        for number in range(steps):
            _, stored = file["field"].id.read_direct_chunk((number, 0, 0))
            with open(f"{array}/{number}.0.0", "wb") as target:
                target.write(stored)


def write_json(path, value):
    with open(path, "w") as target:
        json.dump(value, target)


def write_many():
    with netCDF4.Dataset(f"{folder}/many.nc", "w") as file:
        for name in ("time", "y", "x"):
            file.createDimension(name, 8)
            file.createVariable(name, "f8", (name,))[:] = np.arange(8)
        for number in range(variables):
            one = file.createVariable(f"v{number}", "f4", ("time", "y", "x"), zlib=True, shuffle=True)
            one[:] = np.full((8, 8, 8), number)
            one.setncatts({"units": "K", "long_name": f"variable {number}", "valid_min": 0.5})


def write_chunks(name, libver, max_shape):
    with h5py.File(f"{folder}/{name}", "w", libver=libver) as file:
        made = file.create_dataset("data", (chunks * 4,), "i4", chunks=(4,), maxshape=max_shape, compression="gzip")
        stored = None
        for number in range(chunks):
            if stored is None:
                made[0:4] = np.arange(4)
                stored = made.id.read_direct_chunk((0,))[1]
            else:
                made.id.write_direct_chunk((number * 4,), stored)


os.makedirs(folder, exist_ok=True)
write_field()
write_many()
write_chunks("chunks.h5", "latest", (None,))
write_chunks("tree.h5", "earliest", (None,))
