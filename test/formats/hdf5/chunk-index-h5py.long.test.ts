import t from "tap";
import { clientMissing } from "../../support/clients/require-client.js";
import { readOnlyIndex, valuesOf, writeChunkIndexes } from "./chunk-indexes-of-h5py.js";

t.setTimeout(240_000);

const skip = clientMissing("h5py");

t.test("chunks of every kind of index have the values that h5py reads", { skip }, async (t) => {
  const { datasets, bytesOf, remove } = writeChunkIndexes();
  t.teardown(remove);
  const kinds = new Map<string, number>();
  for (const dataset of datasets) {
    const bytes = bytesOf(`${dataset.name}.h5`);
    if (dataset.name.startsWith("edges-")) {
      await t.rejects(readOnlyIndex(bytes), /chunks at the edge of the array are stored without filters/);
      continue;
    }
    const { kind, chunks } = await readOnlyIndex(bytes);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    const expected = bytesOf(`${dataset.name}.bin`);
    t.ok(Buffer.from(valuesOf(dataset, bytes, chunks).buffer).equals(expected), dataset.name);
    const cold = await readOnlyIndex(bytes, true);
    t.same(cold.chunks, chunks, `${dataset.name}, fetched`);
  }
  t.equal(kinds.size, 6, `all kinds: ${[...kinds].join(" ")}`);
});

t.test("300,000 chunks of every kind have the values that h5py reads", { skip }, async (t) => {
  const { datasets, bytesOf, remove } = writeChunkIndexes(["many"]);
  t.teardown(remove);
  for (const dataset of datasets) {
    const bytes = bytesOf(`${dataset.name}.h5`);
    const began = performance.now();
    const { kind, chunks } = await readOnlyIndex(bytes);
    t.comment(
      `${dataset.name}: ${kind}, ${chunks.offsets.length} in ${Math.round(performance.now() - began)} ms`,
    );
    t.equal(chunks.numbers, undefined, `${dataset.name} is dense`);
    const expected = bytesOf(`${dataset.name}.bin`);
    t.ok(Buffer.from(valuesOf(dataset, bytes, chunks).buffer).equals(expected), dataset.name);
  }
});
