"""Serves a file or Zarr store with Xpublish: serve_with_xpublish.py PLACE CACHE_BYTES PORT, with Xpublish and cachey on PYTHONPATH.

By OPeNDAP, too, if Xpublish's plugin for it is there.
"""
import importlib.util
import sys

import xarray
import xpublish
from xpublish.plugins.included.dataset_info import DatasetInfoPlugin
from xpublish.plugins.included.zarr import ZarrPlugin

place, cache_bytes, port = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
dataset = xarray.open_dataset(place, chunks={"time": 1}, decode_cf=False)
# As for data that were never stored: chunks are compressed as Xpublish does by default.
for variable in dataset.variables.values():
    variable.encoding = {}
plugins = {"zarr": ZarrPlugin(), "info": DatasetInfoPlugin()}
if importlib.util.find_spec("xpublish_opendap") is not None:
    from xpublish_opendap.plugin import OpenDapPlugin

    plugins["opendap"] = OpenDapPlugin()
rest = xpublish.Rest({"field": dataset}, plugins=plugins, cache_kws={"available_bytes": cache_bytes})
rest.serve(host="127.0.0.1", port=port, log_level="warning")
