"""Serves a Zarr store with zarr-http-server: serve_with_zarr_http_server.py STORE PORT, with it on PYTHONPATH."""
import sys

from zarr.storage import LocalStore
from zarr_http_server import serve, store_app

app = store_app(LocalStore(sys.argv[1], read_only=True))
serve(app, host="127.0.0.1", port=int(sys.argv[2]), uvicorn_options={"log_level": "warning"})
