import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t from "tap";
import * as zarr from "zarrita";
import type { JsonObject } from "../../src/json/json-value.js";
import {
  COLUMNS,
  type EncodedArray,
  encodedFiles,
  ROWS,
  serveDirectory,
  serveEncoded,
} from "../support/datasets/value-codec-store.js";
import { writeFiles } from "../support/write-store.js";

const items = Array.from({ length: ROWS * COLUMNS }, (_, index) => BigInt(index - 200));
const base = {
  type: "f4",
  encoded: "i2",
  offset: 5,
  fillValue: Number.NaN,
  items,
  isSharded: false,
  mark: -1n,
} as const;
const examples: Record<string, EncodedArray> = {
  packed: { ...base, scale: 0.5 },
  shards: { ...base, scale: 0.5, isSharded: true },
  decoded: { ...base, scale: 10_000 },
};

t.test(
  "stored bytes of packed numbers are served as they are, in chunks, shards and documents",
  async (t) => {
    const { get, json } = await serveEncoded(t, examples);
    const files = encodedFiles(examples.packed!);
    const chunk = Buffer.from(await (await get("/datasets/d/zarr/packed/0.1")).arrayBuffer());
    t.ok(chunk.equals(files["c/0/1"] as Buffer));
    t.equal((await get("/datasets/d/zarr/packed/1.1")).status, 404, "absent as NaN, which the mark means");
    const shard = Buffer.from(await (await get("/datasets/d/zarr3/shards/c/0/1")).arrayBuffer());
    t.ok(shard.equals(encodedFiles(examples.shards!)["c/0/1"] as Buffer));
    t.match(await json("/datasets/d/zarr/packed/.zarray"), {
      dtype: "<i2",
      fill_value: -1,
      compressor: { id: "gzip" },
    });
    t.match(await json("/datasets/d/zarr/decoded/.zarray"), { dtype: "<f4", compressor: { id: "gzip" } });
    t.match(await json("/datasets/d/zarr3/decoded/zarr.json"), {
      data_type: "float32",
      fill_value: "NaN",
      codecs: [{ name: "bytes" }, { name: "gzip" }],
    });
    const info = JSON.stringify(await json("/datasets/d/info"));
    t.match(info, /"scale_factor"/);
    const selected = JSON.stringify(await json("/datasets/d/select?var=packed&f=json"));
    t.match(selected, /-395(?:\.0)?,-393/, "decoded: (-200) * 2 + 5");
  },
);

t.test(
  "a damaged chunk fails, whether it is cut off, of another length, or has numbers that cannot be",
  async (t) => {
    const { get, directory } = await serveEncoded(t, examples);
    const good = encodedFiles(examples.decoded!)["c/0/0"] as Buffer;
    const bad = [good.subarray(0, good.length - 9), gzipSync(Buffer.alloc(255)), gzipSync(Buffer.alloc(258))];
    for (const [index, bytes] of bad.entries()) {
      await writeFiles(join(directory, "decoded"), { [["c/0/0", "c/0/1", "c/1/0"][index]!]: bytes });
      t.equal((await get(`/datasets/d/zarr/decoded/${["0.0", "0.1", "1.0"][index]}`)).status, 500);
    }
    const { "zarr.json": document } = encodedFiles(examples.decoded!);
    const integers = JSON.parse(String(document)) as JsonObject;
    const codecs = [
      { name: "scale_offset", configuration: { scale: 3 } },
      { name: "cast_value", configuration: { data_type: "float32" } },
      { name: "bytes", configuration: { endian: "little" } },
    ];
    const floats = (value: number) => new Uint8Array(new Float32Array(128).fill(value).buffer);
    await writeFiles(join(directory, "integers"), {
      "zarr.json": { ...integers, data_type: "int8", fill_value: 0, codecs },
      ...{ "c/0/0": floats(3), "c/0/1": floats(4), "c/1/0": floats(1e9), "c/1/1": floats(Number.NaN) },
    });
    const fresh = await serveDirectory(t, directory);
    const status = async (key: string) => (await fresh.get(`/datasets/d/zarr/integers/${key}`)).status;
    t.same(await Promise.all(["0.0", "0.1", "1.0", "1.1"].map(status)), [200, 500, 500, 500]);
  },
);

t.test("values are decoded of chunks of unequal lengths, too", async (t) => {
  const { directory } = await serveEncoded(t, {});
  const codecs = [
    { name: "scale_offset", configuration: { scale: 3 } },
    { name: "cast_value", configuration: { data_type: "int16" } },
    { name: "bytes", configuration: { endian: "big" } },
  ];
  const document = {
    ...(JSON.parse(String(encodedFiles(examples.decoded!)["zarr.json"])) as JsonObject),
    ...{ shape: [8], fill_value: 0, dimension_names: ["x"], codecs },
    chunk_grid: { name: "rectilinear", configuration: { kind: "inline", chunk_shapes: [[3, 5]] } },
  };
  const stored = (...numbers: number[]) => Buffer.from(Int16Array.from(numbers).buffer).swap16();
  await writeFiles(join(directory, "uneven"), {
    "zarr.json": document,
    "c/0": stored(0, 1, 2),
    "c/1": stored(3, 4, 5, -32_768, 32_767),
  });
  const fresh = await serveDirectory(t, directory);
  const values = [0, 1, 2, 3, 4, 5, -32_768, 32_767].map((number) => Math.fround(number / 3));
  for (const prefix of ["zarr", "zarr3"]) {
    const store = new zarr.FetchStore(`${fresh.url}/datasets/d/${prefix}/uneven`);
    const { data } = await zarr.get(await zarr.open(store, { kind: "array" }));
    t.same(Array.from(data as Float32Array), values, prefix);
  }
});
