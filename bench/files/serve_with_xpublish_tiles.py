"""Serves map tiles of a NetCDF file with Xpublish and xpublish-tiles: serve_with_xpublish_tiles.py FILE stored|memory PORT."""
import sys

import xarray
import xpublish
from xpublish_tiles.config import config
from xpublish_tiles.xpublish.tiles import TilesPlugin

path, place, port = sys.argv[1:]
# xarray reads NetCDF without asyncio.
config.set(async_load=False)
# As its own program opens a file; the id is that of its cache of grids.
dataset = xarray.open_dataset(path, chunks=None).assign_attrs(_xpublish_id="grid")
(dataset if place == "memory" else dataset["crs"]).load()
rest = xpublish.SingleDatasetRest(dataset, plugins={"tiles": TilesPlugin()})
rest.serve(host="127.0.0.1", port=int(port), log_level="warning")
