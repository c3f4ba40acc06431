"""Serves map tiles of a NetCDF file with titiler.core and rio-tiler: serve_with_titiler.py FILE PORT.

Below /gdal, rio-tiler reads by GDAL, as titiler does by default; below /xarray, by xarray from a file that is opened once.
"""
import sys
import warnings

import uvicorn
import xarray
from fastapi import FastAPI
from rio_tiler.io import XarrayReader
from titiler.core.dependencies import DefaultDependency
from titiler.core.factory import TilerFactory

path, port = sys.argv[1], int(sys.argv[2])
# rio-tiler says for each tile that it leaves the poles out.
warnings.filterwarnings("ignore")
field = xarray.open_dataset(path)["t"].rename(lat="y", lon="x").rio.write_crs("EPSG:4326")


# One band of the file: rio-tiler has GDAL warp all bands of what it opens.
def read_by_gdal(step: int):
    return f"vrt://NETCDF:{path}:t?bands={step + 1}"


def read_by_xarray(step: int):
    return field.isel(time=step)


app = FastAPI()
gdal = TilerFactory(router_prefix="/gdal", path_dependency=read_by_gdal)
app.include_router(gdal.router, prefix="/gdal")
by_xarray = TilerFactory(
    router_prefix="/xarray", path_dependency=read_by_xarray, reader=XarrayReader, layer_dependency=DefaultDependency
)
app.include_router(by_xarray.router, prefix="/xarray")
uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")
