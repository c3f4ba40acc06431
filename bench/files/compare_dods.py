"""Compares the first steps of `field` that servers send by OPeNDAP with the file: compare_dods.py FILE STEPS URL…"""
import sys
import urllib.request

import netCDF4

path, steps, *urls = sys.argv[1:]
with netCDF4.Dataset(path) as file:
    file.set_auto_mask(False)
    expected = file["field"][: int(steps)].astype(">f4").tobytes()
for url in urls:
    with urllib.request.urlopen(url) as answer:
        received = answer.read().split(b"\nData:\n", 1)[1]
    # The count of values comes twice before them.
    if received[8:] != expected or received[:8] != 2 * (len(expected) // 4).to_bytes(4, "big"):
        sys.exit(f"{url}: the values differ from the file")
