"""Walks a file as a program does that wants to know all of its metadata and chunks: walk_with_h5py.py FILE TIMES

Prints the seconds of each walk as JSON. The places of chunks are listed with `chunk_iter` if h5py has it. Else they are only counted,
which goes through the index once: HDF5 1.10 takes time in proportion to the square of their number if it is asked for each place.
"""
import json
import sys
import time

import h5py

path, times = sys.argv[1], int(sys.argv[2])


def walk():
    found = 0
    with h5py.File(path) as file:

        def visit(_name, node):
            nonlocal found
            dict(node.attrs)
            if not isinstance(node, h5py.Dataset):
                return
            node.shape, node.dtype, node.fillvalue
            if node.chunks is None:
                return
            if hasattr(node.id, "chunk_iter"):
                places = []
                node.id.chunk_iter(lambda info: places.append((info.byte_offset, info.size)) or None)
                found += len(places)
            else:
                found += node.id.get_num_chunks()

        dict(file.attrs)
        file.visititems(visit)
    return found


seconds = []
for _ in range(times):
    began = time.perf_counter()
    chunks = walk()
    seconds.append(time.perf_counter() - began)
print(json.dumps({"seconds": seconds, "chunks": chunks, "lists": hasattr(h5py.h5d.DatasetID, "chunk_iter")}))
