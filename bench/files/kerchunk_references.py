"""Writes references of many NetCDF-4 files with kerchunk: kerchunk_references.py PATTERN FILE PROCESSES"""
import glob
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from kerchunk.combine import MultiZarrToZarr
from kerchunk.hdf import SingleHdf5ToZarr


def translate(path):
    return SingleHdf5ToZarr(path).translate()


if __name__ == "__main__":
    pattern, target, processes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    paths = sorted(glob.glob(pattern))
    if processes == 1:
        single = [translate(path) for path in paths]
    else:
        # Children of this process, so that their processor time counts as its own.
        with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
            single = list(pool.map(translate, paths, chunksize=16))
    options = {"concat_dims": ["time"], "identical_dims": ["y", "x"], "remote_protocol": "file"}
    with open(target, "w") as file:
        json.dump(MultiZarrToZarr(single, **options).translate(), file)
