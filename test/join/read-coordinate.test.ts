import { deflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { describePart, type PartArray } from "../../src/join/describe-part.js";
import { openSource } from "../../src/open/open-source.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../open/write-store.js";

/** Describes one array, named as its dimension, of a Zarr store. */
async function describe(
  t: Test,
  document: object,
  chunks: Readonly<Record<string, Uint8Array>>,
  dimension = "x",
): Promise<PartArray> {
  const folder = await makeDirectory(t);
  await writeFiles(folder, {
    ".zgroup": zgroup,
    "x/.zarray": { ...zarray, ...document },
    "x/.zattrs": {
      _ARRAY_DIMENSIONS:
        "shape" in document && Array.isArray(document.shape) ? document.shape.map(() => "x") : ["x"],
    },
    ...Object.fromEntries(Object.entries(chunks).map(([key, bytes]) => [`x/${key}`, bytes])),
  });
  const { arrays } = await describePart("part", await (await openSource(folder)).readTree(), dimension);
  return arrays[0] as PartArray;
}

t.test("coordinates are read chunk by chunk, decoded, without padding", async (t) => {
  const { values } = await describe(
    t,
    { shape: [5], chunks: [2], dtype: ">i2", fill_value: 7, compressor: { id: "zlib", level: 1 } },
    { 0: deflateSync(Uint8Array.of(0, 1, 0, 2)), 2: deflateSync(Uint8Array.of(0, 5, 9, 9)) },
  );
  t.same([...(values as Uint8Array)], [0, 1, 0, 2, 0, 7, 0, 7, 0, 5]);
});

t.test("scalars and empty coordinates are read", async (t) => {
  const scalar = await describe(t, { shape: [], chunks: [], dtype: "|u1" }, { 0: Uint8Array.of(3) });
  t.same([...(scalar.values as Uint8Array)], [3]);
  t.same((await describe(t, { shape: [0], chunks: [1] }, {})).values?.length, 0);
});

t.test("texts are one chunk of texts", async (t) => {
  const text = (...texts: string[]) => {
    const bytes = Buffer.concat(
      texts.flatMap((each) => [Uint8Array.of(Buffer.byteLength(each), 0, 0, 0), Buffer.from(each)]),
    );
    return Buffer.concat([Uint8Array.of(texts.length, 0, 0, 0), bytes]);
  };
  const document = { shape: [5], chunks: [2], dtype: "|O", fill_value: "", filters: [{ id: "vlen-utf8" }] };
  const { values } = await describe(t, document, { 0: text("a", "é"), 2: text("last", "padding") });
  t.same(Buffer.from(values as Uint8Array), text("a", "é", "", "", "last"));
  await t.rejects(describe(t, document, { 0: Uint8Array.of(2, 0, 0, 0, 9, 0, 0, 0) }), {
    code: "corrupt-chunk",
    message: /expected 2 texts, received 0/,
  });
});

t.test("a coordinate of the joined dimension has to be read, others need not be", async (t) => {
  const long = { shape: [1_000_001], chunks: [1_000_001] };
  await t.rejects(describe(t, long, {}), {
    code: "unsupported",
    message: "'x': expected at most 1000000 values in one part, received 1000001",
  });
  t.equal((await describe(t, long, {}, "time")).values, undefined);
  const unknown = { compressor: { id: "unheard-of" } };
  await t.rejects(describe(t, unknown, {}), { code: "unsupported", message: /unheard-of/ });
  t.equal((await describe(t, unknown, {}, "time")).values, undefined);
  await t.rejects(describe(t, {}, { 0: Uint8Array.of(1) }), { code: "corrupt-chunk" });
});
