"""Serves a file with Xpublish: serve_with_xpublish.py FILE PORT, with Xpublish and cachey on PYTHONPATH."""
import sys

import xarray
import xpublish
from xpublish.plugins.included.dataset_info import DatasetInfoPlugin
from xpublish.plugins.included.zarr import ZarrPlugin

dataset = xarray.open_dataset(sys.argv[1], chunks={"time": 1}, decode_cf=False)
# Each chunk is made when it is asked for, as in the first round of zpublish.
rest = xpublish.Rest(
    {"field": dataset},
    plugins={"zarr": ZarrPlugin(), "info": DatasetInfoPlugin()},
    cache_kws={"available_bytes": 0},
)
rest.serve(host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
