"""Writes a global grid of a quarter of a degree, or warps its tiles with GDAL.

warp_tiles.py write FILE STEPS
warp_tiles.py warp FILE FIRST STEPS    prints tiles per second of GDAL's warper: the 16 tiles of zoom 2, for each step
warp_tiles.py show FILE STEP X Y       prints the indices of the palette that the pixels of a tile of zoom 2 have, base64
"""
import base64
import math
import sys
import time

import numpy as np

action, path, *rest = sys.argv[1:]
ZOOM, EDGE, LOW, HIGH = 2, math.pi * 6378137, -40.0, 60.0


def write(steps):
    import netCDF4

    with netCDF4.Dataset(path, "w") as file:
        lat, lon = 90 - np.arange(721) / 4, np.arange(1440) / 4
        for name, values, units in (
            ("time", np.arange(steps), "hours since 2021-01-01"),
            ("lat", lat, "degrees_north"),
            ("lon", lon, "degrees_east"),
        ):
            file.createDimension(name, len(values))
            axis = file.createVariable(name, "f8", (name,))
            axis[:] = values
            axis.units = units
        options = {"zlib": True, "complevel": 1, "shuffle": True, "chunksizes": (1, 721, 1440), "fill_value": np.nan}
        field = file.createVariable("t", "f4", ("time", "lat", "lon"), **options)
        y, x = np.meshgrid(np.radians(lat), np.radians(lon), indexing="ij")
        for step in range(steps):
            waves = 8 * np.sin(5 * x + step / 7) * np.cos(4 * y) + np.sin(31 * x) * np.sin(23 * y)
            field[step] = np.round(50 * np.cos(y) - 25 + waves, 2)


def warp(dataset, x, y):
    from osgeo import gdal

    side = 2 * EDGE / 2**ZOOM
    bounds = [x * side - EDGE, EDGE - (y + 1) * side, (x + 1) * side - EDGE, EDGE - y * side]
    made = gdal.Warp(
        "", dataset, format="MEM", dstSRS="EPSG:3857", outputBounds=bounds, width=256, height=256,
        resampleAlg="near", errorThreshold=0, dstNodata=float("nan"),
    )
    return made.GetRasterBand(1).ReadAsArray()


def open_step(step):
    from osgeo import gdal

    gdal.UseExceptions()
    # Places beyond the edge of Web Mercator, which PROJ has errors for.
    gdal.SetConfigOption("CPL_LOG", "/dev/null")
    options = ["-b", str(step + 1), "-a_srs", "EPSG:4326", "-a_ullr", "-0.125", "90.125", "359.875", "-90.125"]
    return gdal.Translate("", f"NETCDF:{path}:t", format="VRT", options=options)


if action == "write":
    write(int(rest[0]))
elif action == "warp":
    first, steps = map(int, rest)
    open_step(first)
    began = time.perf_counter()
    for step in range(first, first + steps):
        dataset = open_step(step)
        for tile in range(16):
            warp(dataset, tile % 4, tile // 4)
    print(16 * steps / (time.perf_counter() - began))
else:
    step, x, y = map(int, rest)
    values = warp(open_step(step), x, y).astype("f8")
    place = np.clip(np.nan_to_num(np.floor((values - LOW) / (HIGH - LOW) * 255)), 0, 254)
    print(base64.b64encode(np.where(np.isnan(values), 0, 1 + place).astype("u1").tobytes()).decode())
