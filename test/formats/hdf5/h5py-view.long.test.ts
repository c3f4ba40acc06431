import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import t, { type Test } from "tap";
import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import { hdf5Format } from "../../../src/formats/hdf5/hdf5-format.js";
import { askPython } from "../../support/clients/ask-python.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { choose } from "../../support/effort.js";
import { memoryBlocks } from "../memory-blocks.js";
import { readArray } from "../read-array.js";
import { viewOf } from "./model-view.js";

t.setTimeout(600_000);

const FIXTURES = fileURLToPath(new URL("../../../../test/fixtures/", import.meta.url));

/** Runs a script that writes files with h5py. @returns What it printed, and the files. */
function write(t: Test, script: string, ...args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "zpublish-hdf5-"));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const printed = JSON.parse(askPython(readFileSync(FIXTURES + script, "utf8"), null, [folder, ...args]));
  return { printed, bytesOf: (name: string) => readFileSync(join(folder, name)) };
}

t.test(
  "files of every version of the format are read as h5py reads them",
  { skip: clientMissing("h5py", "netcdf4") },
  async (t) => {
    const { printed, bytesOf } = write(t, "write_hdf5.py");
    for (const [name, expected] of Object.entries<Record<string, unknown>>(printed)) {
      const bytes = bytesOf(name);
      for (const isSlow of [false, true]) {
        const file = await readHdf5(memoryBlocks(bytes, isSlow));
        if (name.startsWith("shared-")) {
          const reasons = [...file.refused.map(({ reason }) => reason), ...file.warnings];
          t.ok(
            reasons.length > 0 && reasons.every((reason) => reason.includes("heap of shared messages")),
            name,
          );
          continue;
        }
        const found = viewOf(file);
        t.same(Object.keys(found).sort(), Object.keys(expected).sort(), `${name}: the same objects`);
        // Thousands of objects: an assertion for each takes longer than to read it.
        const different = Object.entries(expected).filter(
          ([path, view]) => !isDeepStrictEqual(found[path], view),
        );
        for (const [path, view] of different.slice(0, 10)) t.strictSame(found[path], view, `${name} ${path}`);
        t.equal(different.length, 0, `${name}: objects are as h5py sees them`);
        t.same(file.refused, [], `${name}: nothing is refused`);
        t.same(file.warnings, [], `${name}: nothing to warn of`);
      }
    }
  },
);

const skip = clientMissing("h5py");

t.test("chunks of every pipeline have the values that h5py reads", { skip }, async (t) => {
  const { printed, bytesOf } = write(t, "hdf5_filters.py");
  const file = memoryBlocks(bytesOf("filters.h5"));
  const arrays = (await hdf5Format.readIndex(file)).groups[0]?.arrays ?? [];
  t.equal(arrays.length, printed);
  const seen = new Set<string>();
  for (const array of arrays) {
    for (const { id } of [array.codecs, ...(array.variants ?? [])].flat()) seen.add(id);
    const message = `${array.name}: ${JSON.stringify(array.codecs)}`;
    t.ok(bytesOf(`${array.name}.bin`).equals(await readArray(file, array)), message);
  }
  const own = ["hdf5-bits", "hdf5-filters", "hdf5-fletcher32", "hdf5-shuffle"];
  t.same([...seen].sort(), [...own, "lzf", "shuffle", "zlib"]);
});

t.test("chunks of every kind of index have the values that h5py reads", { skip }, async (t) => {
  const { printed, bytesOf } = write(t, "hdf5_chunk_indexes.py");
  const kinds = new Set<string | undefined>();
  for (const { name } of printed) {
    const file = memoryBlocks(bytesOf(`${name}.h5`));
    const { groups, refused } = await hdf5Format.readIndex(file);
    const array = groups[0]?.arrays[0];
    if (array === undefined) {
      t.match(name, /^edges-/);
      t.match(refused, [{ reason: /chunks at the edge of the array are stored without filters/ }], name);
      continue;
    }
    const layout = (await readHdf5(file)).root.datasets.get("data")?.layout;
    kinds.add(layout?.kind === "chunked" ? layout.index.kind : layout?.kind);
    t.ok(bytesOf(`${name}.bin`).equals(await readArray(file, array)), name);
    const cold = await hdf5Format.readIndex(memoryBlocks(bytesOf(`${name}.h5`), true));
    t.same(cold.groups[0]?.arrays[0]?.chunks, array.chunks, `${name}, fetched`);
  }
  t.equal(kinds.size, 6, `all kinds: ${[...kinds].join(" ")}`);
});

/** Datasets of many chunks that `hdf5_chunk_indexes.py` writes when they are named. Extensible arrays have pages from 131,072 chunks on. */
const MANY = [
  ...["extensible-131071", "extensible-131072", "extensible-300000", "extensible-last-300000"],
  ...["extensible-deflate-131100", "earliest-300000", "fixed-300000", "tree2-300000"],
  "tree2-deflate-131100",
];

t.test("300,000 chunks of every kind have the values that h5py reads", { skip }, async (t) => {
  const chosen = choose(t, MANY);
  const { printed, bytesOf } = write(t, "hdf5_chunk_indexes.py", ...chosen);
  t.equal(printed.length, chosen.length);
  for (const { name } of printed) {
    const file = memoryBlocks(bytesOf(`${name}.h5`));
    const array = (await hdf5Format.readIndex(file)).groups[0]!.arrays[0]!;
    t.ok(array.chunks.kind === "listed" && array.chunks.numbers === undefined, `${name} is dense`);
    t.ok(bytesOf(`${name}.bin`).equals(await readArray(file, array)), name);
  }
});
