"""Answers selections with xarray under FastAPI, as xpublish-edr does: serve_with_fastapi.py PATTERN STORE PORT

PATTERN  NetCDF-4 files along time, opened once
STORE    a Zarr store
/seconds/… only says how long xarray alone takes, in this process.
"""
import glob
import io
import sys
import time

import numpy as np
import uvicorn
import xarray as xr
from fastapi import FastAPI, Request, Response

pattern, store, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
options = {"data_vars": "minimal", "coords": "minimal", "compat": "override"}
files = xr.open_mfdataset(
    sorted(glob.glob(pattern)), engine="h5netcdf", combine="nested", concat_dim="time", decode_times=False, **options
)
# Without dask, points are read by Zarr's own `vindex`.
grid = xr.open_zarr(store, chunks=None)
app = FastAPI()


def series(y: float, x: float):
    return files.field.sel(y=y, x=x, method="nearest").load()


@app.get("/ready")
def ready():
    return True


@app.get("/seconds/series")
def seconds_of_series(y: float, x: float):
    began = time.perf_counter()
    values = series(y, x).values
    return {"seconds": time.perf_counter() - began, "values": values.tolist()}


@app.post("/seconds/points")
async def seconds_of_points(request: Request):
    rows = np.array(await request.json())
    began = time.perf_counter()
    places = {dim: xr.DataArray(rows[:, axis], dims="point") for axis, dim in enumerate(("time", "y", "x"))}
    values = grid.field.isel(places).load().values
    return {"seconds": time.perf_counter() - began, "values": values.tolist()}


@app.get("/series.csv")
def series_as_csv(y: float, x: float):
    text = io.StringIO()
    series(y, x).to_dataframe().reset_index().to_csv(text, index=False)
    return Response(text.getvalue(), media_type="text/csv")


@app.get("/box.nc")
def box(steps: int):
    return Response(bytes(grid[["field"]].isel(time=slice(0, steps)).to_netcdf()), media_type="application/x-netcdf")


uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
