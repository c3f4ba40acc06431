"""Serves a Zarr store with tiled: serve_with_tiled.py STORE PORT, with tiled on PYTHONPATH."""
import pathlib
import sys

import uvicorn
from tiled.adapters.zarr import ZarrAdapter
from tiled.config import Authentication
from tiled.server.app import build_app

tree = ZarrAdapter.from_uris(pathlib.Path(sys.argv[1]).as_uri())
app = build_app(tree, Authentication(allow_anonymous_access=True))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
