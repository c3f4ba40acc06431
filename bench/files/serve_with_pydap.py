"""Serves a folder with pydap's own server: serve_with_pydap.py FOLDER PORT, with pydap and gunicorn on PYTHONPATH."""
import sys

import numpy as np
from pydap.handlers import netcdf_handler
from pydap.wsgi.app import main


def read_piece(variable, key):
    """What pydap 3.5.9 does, but for its last step: it gives every piece the shape of the whole variable, and fails if it is smaller."""
    with netcdf_handler.netcdf_file(variable.filepath, "r") as source:
        source.set_auto_scale(False)
        return np.asarray(source[variable.path][key]).astype(variable.dtype)


netcdf_handler.LazyVariable.__getitem__ = read_piece
# The default closes the connection after each answer.
sys.argv = ["pydap", "--worker-class", "gthread", "--data", sys.argv[1], "--port", sys.argv[2]]
main()
