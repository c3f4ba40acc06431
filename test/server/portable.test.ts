import { join } from "node:path";
import { deflateSync, gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { FetchStore, open, get as readArray, root } from "zarrita";
import type { DatasetConfig } from "../../src/config/config.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

const DEFLATED = { compressor: { id: "zlib", level: 4 }, filters: null };

/** Bytes of items, shuffled as NetCDF-4 does and deflated. */
function shuffled(items: Int16Array): Buffer {
  const bytes = Buffer.from(items.buffer);
  const size = items.BYTES_PER_ELEMENT;
  const out = Buffer.alloc(bytes.length);
  bytes.forEach((byte, at) => {
    out[(at % size) * items.length + Math.floor(at / size)] = byte;
  });
  return deflateSync(out);
}

function utf32(texts: readonly string[], length: number): Buffer {
  const bytes = Buffer.alloc(texts.length * length * 4);
  texts.forEach((text, index) => {
    Array.from(text).forEach((character, at) => {
      bytes.writeUInt32LE(character.codePointAt(0)!, (index * length + at) * 4);
    });
  });
  return bytes;
}

const SAVED_DAYS = [0n, -(2n ** 63n), 10_957n, 1n];
const TEMPERATURES = Int16Array.from({ length: 16 }, (_, index) => index * 100 - 7);

/** A store of what Zarr v3 has no portable name for, and of what it has. */
async function writeStore(t: Test, first = 0): Promise<string> {
  const location = join(await makeDirectory(t), "store.zarr");
  const array = (dtype: unknown, more: object = {}, shape = [4]) => ({
    ...{
      zarr_format: 2,
      shape,
      chunks: shape,
      dtype,
      fill_value: null,
      order: "C",
      dimension_separator: ".",
    },
    ...DEFLATED,
    ...more,
  });
  const dims = (...names: string[]) => ({ _ARRAY_DIMENSIONS: names });
  const air = TEMPERATURES.map((value) => value + first);
  await writeFiles(location, {
    ".zgroup": zgroup,
    "air/.zarray": array("<i2", { filters: [{ id: "shuffle", elementsize: 2 }] }, [4, 4]),
    "air/.zattrs": dims("time", "lat"),
    "air/0.0": shuffled(air),
    "time/.zarray": array("<i4", { compressor: { id: "gzip", level: 1 } }),
    "time/.zattrs": { ...dims("time"), units: "days since 2000-01-01" },
    "time/0": gzipSync(Int32Array.from({ length: 4 }, (_, index) => first + index)),
    "lat/.zarray": array("<f4", { compressor: null }),
    "lat/.zattrs": { ...dims("lat"), units: "degrees_north" },
    "lat/0": Buffer.from(Float32Array.of(1, 2, 3, 4).buffer),
    "saved/.zarray": array("<M8[D]", { fill_value: "NaT" }),
    "saved/.zattrs": dims("time"),
    "saved/0": deflateSync(BigInt64Array.from(SAVED_DAYS)),
    "name/.zarray": array("<U3", { fill_value: "no" }),
    "name/.zattrs": dims("time"),
    "name/0": deflateSync(utf32(["añ", "", "x\u{1f30d}y", "b"], 3)),
    "code/.zarray": array("|S2", { compressor: null }),
    "code/.zattrs": dims("time"),
    "code/0": Buffer.from("ab\0\0c\0\xff\0", "latin1"),
    "record/.zarray": array([["a", "<i4"]]),
    "record/.zattrs": dims("time"),
    "odd/.zarray": array("<i4", { compressor: { id: "bz2", level: 1 } }),
    "odd/.zattrs": dims("time"),
  });
  return location;
}

const PORTABLE = { zarr3: { portable: true } } as const;

function dataset(location: string, more: Partial<DatasetConfig> = {}): DatasetConfig {
  return { id: "d", location, immutable: false, encoding: {}, variables: {}, ...more };
}

const BLOSC = {
  name: "blosc",
  configuration: { cname: "lz4", clevel: 5, shuffle: "shuffle" },
};

interface ArrayJson {
  readonly codecs: readonly { readonly name: string; readonly configuration?: object }[];
  readonly data_type: unknown;
  readonly attributes: object;
}

/** Reads an array of Zarr v3 with zarrita. */
async function readV3(store: string, path: string) {
  const { data, shape } = await readArray(
    await open.v3(root(new FetchStore(store)).resolve(path), { kind: "array" }),
  );
  return { shape, items: Array.from(data as unknown as Iterable<unknown>) };
}

t.test("a portable store has codecs and types of the registry, and the same values", async (t) => {
  const location = await writeStore(t);
  const { url, get, json, lines } = await startServer(t, { datasets: [dataset(location, PORTABLE)] });
  const plain = await startServer(t, { datasets: [dataset(location)] });
  const store = `${url}/datasets/d/zarr3`;
  const documentOf = async (path: string) => (await json(`/datasets/d/zarr3/${path}/zarr.json`)) as ArrayJson;

  t.match(await documentOf("air"), { data_type: "int16", codecs: [{ name: "bytes" }, BLOSC] });
  t.same(await readV3(store, "air"), { shape: [4, 4], items: [...TEMPERATURES] });

  const saved = await documentOf("saved");
  t.match(saved, {
    data_type: "int64",
    attributes: { units: "days since 1970-01-01", calendar: "proleptic_gregorian" },
  });
  t.same((await readV3(store, "saved")).items, SAVED_DAYS);
  t.match(await documentOf("name"), {
    ...{ data_type: "string", fill_value: "no" },
    codecs: [{ name: "vlen-utf8" }, BLOSC],
  });
  t.same((await readV3(store, "name")).items, ["añ", "", "x\u{1f30d}y", "b"]);
  t.match(await documentOf("code"), { data_type: "bytes", codecs: [{ name: "vlen-bytes" }, BLOSC] });

  const { consolidated_metadata } = (await json("/datasets/d/zarr3/zarr.json")) as {
    consolidated_metadata: { metadata: object };
  };
  t.same(Object.keys(consolidated_metadata.metadata).sort(), [
    ...["air", "code", "lat", "name", "saved", "time"],
  ]);
  for (const [path, reason] of [
    ["record", /no portable name for items of void/],
    ["odd", /bz2/],
  ] as const) {
    const answer = await get(`/datasets/d/zarr3/${path}/zarr.json`);
    t.equal(answer.status, 404);
    t.match(((await answer.json()) as { detail: string }).detail, reason);
    t.equal((await get(`/datasets/d/zarr3/${path}/c/0`)).status, 404);
    t.match(JSON.stringify(lines), new RegExp(`served as Zarr v2 only: array '${path}'`));
  }

  const etagOf = async (from: { get: typeof get }, path: string) =>
    (await from.get(`/datasets/d/${path}`)).headers.get("etag");
  for (const path of ["time", "lat"])
    t.equal(await etagOf({ get }, `zarr3/${path}/c/0`), await etagOf({ get }, `zarr/${path}/0`), path);
  for (const path of ["saved", "name", "code"])
    t.not(await etagOf({ get }, `zarr3/${path}/c/0`), await etagOf({ get }, `zarr/${path}/0`), path);
  for (const key of ["air/0.0", "saved/0", "air/.zarray"])
    t.equal(await etagOf({ get }, `zarr/${key}`), await etagOf(plain, `zarr/${key}`), `v2 stays: ${key}`);
  t.match(await plain.json("/datasets/d/zarr3/air/zarr.json"), {
    codecs: [{ name: "bytes" }, { name: "numcodecs.shuffle" }, { name: "numcodecs.zlib" }],
  });
});

t.test("both plans of an array have their own entries of the cache", async (t) => {
  const cache = { directory: await makeDirectory(t), maxBytes: 2 ** 24 };
  const { get } = await startServer(t, { cache, datasets: [dataset(await writeStore(t), PORTABLE)] });
  const bytesOf = async (path: string) => {
    const answer = await get(`/datasets/d/${path}`);
    return [answer.headers.get("x-cache"), Buffer.from(await answer.arrayBuffer()).toString("hex")] as const;
  };
  const [, made] = await bytesOf("zarr3/air/c/0/0");
  const [, stored] = await bytesOf("zarr/air/0.0");
  t.not(made, stored);
  t.same(await bytesOf("zarr3/air/c/0/0"), ["HIT", made]);
  t.equal((await bytesOf("zarr/air/0.0"))[1], stored);
});

t.test("encodings and overviews are portable, too, and so is a dataset alone", async (t) => {
  const location = await writeStore(t);
  const filters = [{ id: "shuffle", elementsize: 2 }];
  const asked = {
    ...PORTABLE,
    encodings: {
      series: { chunks: { time: 2, lat: 2 } },
      gzipped: { compressor: { id: "gzip", level: 1 }, filters: null },
    },
    overviews: { levels: 1, method: "nearest" },
    variables: { air: { filters } },
  } as const;
  const { url, json } = await startServer(t, { single: true, datasets: [dataset(location, asked)] });
  const codecsOf = async (path: string) => ((await json(`/${path}/air/zarr.json`)) as ArrayJson).codecs;
  const items = [...TEMPERATURES];
  for (const [place, codec, expected] of [
    ["zarr3", BLOSC, items],
    ["encodings/series/zarr3", BLOSC, items],
    ["encodings/gzipped/zarr3", { name: "gzip" }, items],
    ["overviews/zarr3/0", BLOSC, items],
    ["overviews/zarr3/1", BLOSC, items.filter((_, index) => index % 2 === 0)],
  ] as const) {
    t.match(await codecsOf(place), [{ name: "bytes" }, codec], place);
    const read = await readV3(`${url}/${place}`, "air");
    t.same(read.items, expected, place);
  }
  t.match(await json("/overviews/zarr/1/air/.zarray"), { filters, compressor: { id: "zlib" } }, "v2 stays");
});

t.test("a joined dataset is portable, but for texts of a fixed length that are put together", async (t) => {
  const folder = await makeDirectory(t);
  for (const first of [0, 4]) {
    const { rename } = await import("node:fs/promises");
    await rename(await writeStore(t, first), join(folder, `${first}.zarr`));
  }
  const { url, json, get } = await startServer(t, {
    datasets: [dataset(join(folder, "*.zarr"), { ...PORTABLE, join: { kind: "concat", dimension: "time" } })],
  });
  t.match(await json("/datasets/d/zarr3/air/zarr.json"), {
    shape: [8, 4],
    codecs: [{ name: "bytes" }, BLOSC],
  });
  const { items } = await readV3(`${url}/datasets/d/zarr3`, "air");
  t.same(items, [...TEMPERATURES, ...TEMPERATURES.map((value) => value + 4)]);
  t.same((await readV3(`${url}/datasets/d/zarr3`, "saved")).items, [...SAVED_DAYS, ...SAVED_DAYS]);
  const name = await get("/datasets/d/zarr3/name/zarr.json");
  if (name.status === 200) t.equal((await readV3(`${url}/datasets/d/zarr3`, "name")).items.length, 8);
});
