"""Compares references with those of kerchunk: compare_references.py OWN KERCHUNKS VARIABLE...

Every chunk of the variables has to lie at the same place; all coordinates, and the first and last step, have to have the same values.
Prints the number of chunks whose places are the same.
"""
import json
import sys

import xarray as xr

own, kerchunks, *variables = sys.argv[1:]


def places_in(path):
    with open(path) as file:
        refs = json.load(file)["refs"]
    return {key: ref for key, ref in refs.items() if key.split("/")[0] in variables and "/.z" not in key}


def steps_in(path):
    dataset = xr.open_dataset(path, engine="kerchunk", decode_times=False)
    return xr.Dataset(dataset.coords), dataset.isel(time=[0, -1])[variables].load()


expected = places_in(kerchunks)
found = places_in(own)
for key in expected.keys() | found.keys():
    if expected.get(key) != found.get(key):
        raise SystemExit(f"{key}: expected {expected.get(key)}, received {found.get(key)}")
for one, other in zip(steps_in(own), steps_in(kerchunks)):
    xr.testing.assert_equal(one, other)
print(len(found))
