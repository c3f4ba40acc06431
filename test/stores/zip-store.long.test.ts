import t from "tap";
import { createFileStore } from "../../src/stores/file-store.js";
import { openZipStore } from "../../src/stores/zip/zip-store.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const WRITE = `
import sys, zipfile, json, hashlib, zarr, numpy
root = sys.argv[1]
def report(path):
    with zipfile.ZipFile(path) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist() if name[-1] != "/"}

store = zarr.ZipStore(root + "/zarr.zip", compression=0, mode="w")
group = zarr.open_group(store, mode="w")
data = group.create_dataset("t", data=numpy.arange(10000, dtype="f4").reshape(100, 100), chunks=(10, 100))
data[:10] = 7
group.create_dataset("é x", data=numpy.arange(9), chunks=4)
store.close()

with zipfile.ZipFile(root + "/python.zip", "w", zipfile.ZIP_DEFLATED) as archive:
    archive.comment = b"a comment"
    archive.writestr("air.zarr/.zgroup", "{}")
    archive.writestr("air.zarr/té/0.0", bytes(100000))
    with archive.open("air.zarr/wide", "w", force_zip64=True) as entry:
        entry.write(b"0123456789" * 1000)
    archive.writestr("air.zarr/stored", bytes(range(256)) * 10, zipfile.ZIP_STORED)

class Unseekable:
    def __init__(self, file): self.file = file
    def write(self, data): return self.file.write(data)
    def flush(self): self.file.flush()
with open(root + "/streamed.zip", "wb") as file:
    file.write(b"#!/bin/sh\\n" * 100)
    with zipfile.ZipFile(Unseekable(file), "w") as archive:
        for number in range(66000):
            archive.writestr("c/%d" % number, str(number))

print(json.dumps({name: report(root + "/" + name) for name in ("zarr.zip", "python.zip", "streamed.zip")}))
`;

const DIGEST = async (bytes: Uint8Array) =>
  Buffer.from(await crypto.subtle.digest("SHA-256", Uint8Array.from(bytes))).toString("hex");

t.test(
  "reads what Python's zipfile and zarr's ZipStore write",
  { skip: clientMissing("zarr") },
  async (t) => {
    const root = await makeDirectory(t);
    const archives = JSON.parse(askPython(WRITE, null, [root])) as Record<string, Record<string, string>>;
    for (const [archive, digests] of Object.entries(archives)) {
      await makeOld(`${root}/${archive}`);
      const store = await openZipStore(createFileStore(root), archive);
      t.same(store.warnings, []);
      let read = 0;
      for (const [name, digest] of Object.entries(digests)) {
        const found = await store.read(name.replace(/^air\.zarr\//, ""));
        if (found === undefined || (await DIGEST(found.bytes)) !== digest) t.fail(`${archive}: ${name}`);
        read++;
      }
      t.equal(read, Object.keys(digests).length, archive);
    }
  },
);
