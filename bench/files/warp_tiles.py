"""Writes a global grid of a quarter of a degree, or warps its tiles with GDAL.

warp_tiles.py write FILE STEPS
warp_tiles.py warp FILE FIRST STEPS    prints tiles per second of GDAL's warper: the 16 tiles of zoom 2, for each step
warp_tiles.py show FILE STEP           prints the indices of the palette that the pixels of these 16 tiles have, base64
warp_tiles.py read FOLDER              prints those that the grey pixels of 0.png to 15.png would have, base64
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
        lat, lon = 90 - np.arange(721) / 4, np.arange(1440) / 4 - 180
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
        # Without it, some readers do not know that these are degrees on the Earth.
        crs = file.createVariable("crs", "i4")
        crs.grid_mapping_name = "latitude_longitude"
        crs.semi_major_axis, crs.inverse_flattening = 6378137.0, 298.257223563
        field = file.createVariable("t", "f4", ("time", "lat", "lon"), **options)
        field.grid_mapping = "crs"
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
    options = ["-b", str(step + 1), "-a_srs", "EPSG:4326", "-a_ullr", "-180.125", "90.125", "179.875", "-90.125"]
    return gdal.Translate("", f"NETCDF:{path}:t", format="VRT", options=options)


def print_bytes(numbers):
    print(base64.b64encode(numbers.astype("u1").tobytes()).decode())


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
elif action == "read":
    from osgeo import gdal

    gdal.UseExceptions()
    pictures = [gdal.Open(f"{path}/{tile}.png").ReadAsArray() for tile in range(16)]
    indices = [np.where(bands[-1] == 0, 0, 1 + np.minimum(bands[0], 254)) for bands in pictures]
    print_bytes(np.stack(indices))
else:
    dataset = open_step(int(rest[0]))
    values = np.stack([warp(dataset, tile % 4, tile // 4) for tile in range(16)]).astype("f8")
    place = np.clip(np.nan_to_num(np.floor((values - LOW) / (HIGH - LOW) * 255)), 0, 254)
    print_bytes(np.where(np.isnan(values), 0, 1 + place))
