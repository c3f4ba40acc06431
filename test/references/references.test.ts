import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import { readParquetRecord } from "../../src/stores/references.js";
import { gridFile } from "../support/grid-file.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { serveObject } from "../support/origins/serve-object.js";
import { runHere, runProgram } from "../support/servers/run-program.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, v3Array, writeFiles, zarray, zgroup } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

/** A document of references. */
interface References {
  readonly version: number;
  readonly refs: Readonly<
    Record<string, string | [url: string] | [url: string, offset: number, byteLength: number]>
  >;
}

const chunk = (first: number, length = 4) => Uint8Array.from({ length }, (_, index) => first + index);

/** A store with a chunk that is absent, in a group with a name that is no ASCII. */
const STORE = {
  ".zgroup": zgroup,
  "é/.zgroup": zgroup,
  "é/.zattrs": { title: "\u{1f30a} {{u}}" },
  "é/a/.zarray": { ...zarray, shape: [6, 4], chunks: [2, 2] },
  "é/a/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
  "é/a/0.0": chunk(0),
  "é/a/1.1": chunk(4),
  "é/a/2.0": chunk(8),
  "n/.zarray": { ...zarray, shape: [], chunks: [] },
  "n/0": chunk(7, 1),
};

/** Shards of two inner chunks each; the second one has only its first. */
function shards(): Record<string, object | Uint8Array> {
  const index = Buffer.alloc(32, 255);
  index.writeBigUInt64LE(0n, 0);
  index.writeBigUInt64LE(4n, 8);
  const half = Buffer.concat([chunk(0), index]);
  index.writeBigUInt64LE(4n, 16);
  index.writeBigUInt64LE(4n, 24);
  const codecs = [{ name: "bytes", configuration: { endian: "little" } }];
  const configuration = { chunk_shape: [4], codecs, index_codecs: codecs, index_location: "end" };
  return {
    "zarr.json": {
      ...v3Array,
      shape: [16],
      chunk_grid: { name: "regular", configuration: { chunk_shape: [8] } },
      codecs: [{ name: "sharding_indexed", configuration }],
    },
    "c/0": Buffer.concat([chunk(0), chunk(4), index]),
    "c/1": half,
  };
}

const zipOf = (isDeflated: boolean) =>
  writeZip(
    Object.entries(STORE).map(([name, content]) => ({
      ...{ name, isDeflated: isDeflated && content instanceof Uint8Array },
      content: content instanceof Uint8Array ? content : JSON.stringify(content),
    })),
  );

/** A NetCDF-3 file whose last variable is cut into chunks, the last of which passes the end of the file. */
const longitudes = Array.from({ length: 701 }, (_, index) => index / 2);
const latitudes = Array.from({ length: 400 }, (_, index) => index / 10);
const LARGE = gridFile({ days: [0, 1], latitudes, longitudes });

async function writeSources(t: Test): Promise<string> {
  const folder = await makeDirectory(t);
  await writeFiles(folder, {
    ...Object.fromEntries(Object.entries(STORE).map(([name, content]) => [`v2.zarr/${name}`, content])),
    ...Object.fromEntries(Object.entries(shards()).map(([name, content]) => [`s.zarr/${name}`, content])),
    "stored.zip": zipOf(false),
    "deflated.zip": zipOf(true),
    "large.nc": LARGE,
    "day-0.nc": gridFile({ days: [0, 1] }),
    "day-1.nc": gridFile({ days: [2, 3] }),
  });
  return folder;
}

/** Files of this machine that references lead to, read once. */
const files = new Map<string, Promise<Buffer>>();

function readOnce(path: string): Promise<Buffer> {
  const reading = files.get(path) ?? readFile(path);
  files.set(path, reading);
  return reading;
}

/** Reads what a reference leads to, from files of this machine or over HTTP. */
async function resolve(reference: References["refs"][string]): Promise<Buffer> {
  if (typeof reference === "string") {
    if (!reference.startsWith("base64:")) throw new Error(`expected bytes, received ${reference}`);
    return Buffer.from(reference.slice("base64:".length), "base64");
  }
  const [url, offset = 0, byteLength] = reference;
  const end = byteLength === undefined ? undefined : offset + byteLength;
  if (url.startsWith("/")) return (await readOnce(url)).subarray(offset, end);
  const headers: Record<string, string> = end === undefined ? {} : { range: `bytes=${offset}-${end - 1}` };
  const answer = await fetch(url, { headers });
  const bytes = Buffer.from(await answer.arrayBuffer());
  return answer.status === 206 ? bytes : bytes.subarray(offset, end);
}

/** Compares all documents and chunks of a served dataset with references. Padding of chunks at the end of an array may differ. */
async function compare(t: Test, id: string, store: string, { version, refs }: References): Promise<string[]> {
  t.equal(version, 1, id);
  const { metadata } = (await (await fetch(`${store}.zmetadata`)).json()) as {
    readonly metadata: Readonly<Record<string, Record<string, number[]>>>;
  };
  const rest = new Set(Object.keys(refs));
  for (const [key, document] of Object.entries(metadata)) {
    t.same(JSON.parse(String(refs[key])), document, `${id} ${key}`);
    rest.delete(key);
    if (!key.endsWith(".zarray")) continue;
    const { shape = [], chunks = [] } = document;
    let keys = [""];
    for (const [axis, length] of shape.entries()) {
      const count = Math.ceil(length / chunks[axis]!);
      keys = keys.flatMap((before) => Array.from({ length: count }, (_, index) => `${before}.${index}`));
    }
    const path = key.slice(0, -".zarray".length);
    for (const name of keys.map((each) => path + (each.slice(1) || "0"))) {
      const served = await fetch(store + name);
      const reference = refs[name];
      rest.delete(name);
      t.equal(reference === undefined, served.status === 404, `${id} ${name}: ${served.status}`);
      if (reference === undefined) continue;
      const expected = Buffer.from(await served.arrayBuffer());
      const found = await resolve(reference);
      t.equal(found.length, expected.length, `${id} ${name}`);
      // What is not the same is padding, which is zeros.
      const differs = expected.equals(found) ? -1 : expected.findIndex((byte, at) => byte !== found[at]);
      if (differs >= 0)
        t.notOk(
          expected.subarray(differs).some((byte) => byte !== 0),
          `${id} ${name}`,
        );
    }
  }
  t.same([...rest], [], `${id}: nothing but documents and chunks`);
  return Object.keys(refs);
}

/** Serves a file over HTTP. */
async function serveFile(t: Test, bytes: Uint8Array): Promise<string> {
  const origin = createServer(({ headers, url }, response) => {
    const object = { bytes, etag: '"1"' };
    const {
      status,
      headers: answered,
      body,
    } = url === "/a%20b/large.nc" ? serveObject(object, headers) : { status: 404, headers: {}, body: "" };
    response.writeHead(status, { ...answered, "content-length": body.length }).end(body);
  });
  origin.listen(0, "127.0.0.1");
  await once(origin, "listening");
  t.teardown(() => origin.close());
  return `http://127.0.0.1:${(origin.address() as AddressInfo).port}/a%20b/large.nc`;
}

t.test("references over HTTP lead to the bytes that are served, of every kind of source", async (t) => {
  const folder = await writeSources(t);
  const locations: Record<string, string> = {
    ...{ v2: "v2.zarr", s: "s.zarr", stored: "stored.zip", deflated: "deflated.zip", large: "large.nc" },
  };
  const remote = await serveFile(t, LARGE);
  const common = { immutable: false, encoding: {}, variables: {} };
  const inside = await serveFile(t, LARGE);
  const { url, get } = await startServer(t, {
    datasets: [
      ...Object.entries(locations).map(([id, name]) => ({ ...common, id, location: join(folder, name) })),
      {
        ...{ ...common, id: "remote", location: remote },
        stores: [{ name: "far", url: new URL(".", remote).href, redirect: true }],
      },
      { ...common, id: "inside", location: inside },
      ...Object.entries({ file: "large.nc", zip: "stored.zip" }).map(([id, name]) => ({
        ...{ ...common, id, location: join(folder, name), file: true, immutable: true },
      })),
      { ...common, id: "changing", location: join(folder, "large.nc"), file: true },
      {
        ...common,
        id: "joined",
        location: join(folder, "day-*.nc"),
        join: { kind: "concat", dimension: "time" },
      },
      // Cut differently, and too large to be written into the references.
      {
        ...common,
        id: "cut",
        location: join(folder, "large.nc"),
        encoding: { compressor: { id: "zlib", level: 1 } },
      },
    ],
  });
  const references = new Map<string, References["refs"]>();
  for (const id of [
    ...Object.keys(locations),
    "remote",
    "inside",
    "joined",
    "cut",
    "file",
    "zip",
    "changing",
  ]) {
    const answer = await get(`/datasets/${id}/references.json`);
    const found = (await answer.json()) as References;
    await compare(t, id, `${url}/datasets/${id}/zarr/`, found);
    references.set(id, found.refs);
    const etag = answer.headers.get("etag");
    t.equal(
      etag === null,
      ["v2", "s", "stored", "deflated", "joined"].includes(id),
      `${id}: ETag of files only`,
    );
    if (etag === null) continue;
    t.equal((await get(`/datasets/${id}/references.json`, { "if-none-match": etag })).status, 304, id);
  }
  const large = references.get("large")!;
  t.same(
    large["t2m/0.0.0"],
    [`${url}/datasets/large/zarr/t2m/0.0.0`],
    "local files are read through the service",
  );
  for (const [id, key] of [
    ["file", "t2m/0.0.0"],
    ["zip", "é/a/1.1"],
  ] as const) {
    const [place, offset] = references.get(id)![key]!;
    t.match([place, offset], [`${url}/datasets/${id}/file`, Number], "or in the file if it is offered");
  }
  t.same(
    references.get("changing")!["t2m/0.0.0"],
    [`${url}/datasets/changing/zarr/t2m/0.0.0`],
    "but not if it may be replaced",
  );
  t.match(large["lat/0"], /^base64:/, "small arrays are in the document");
  const far = Object.entries(references.get("remote")!).filter(
    ([, reference]) => typeof reference !== "string",
  );
  t.ok(far.some(([, [location, , length]]) => location === remote && typeof length === "number"));
  t.notOk(
    JSON.stringify(references.get("inside")).includes(inside),
    "nobody is told of a store to which nobody is redirected",
  );
  t.same(
    Object.keys(references.get("v2")!).slice(0, 4),
    [".zgroup", ".zattrs", "n/.zarray", "n/.zattrs"],
    "as kerchunk orders them",
  );
  t.match(await get("/datasets/none/references.json"), { status: 404 });
});

/** Runs the command in this process, and takes what it writes to a file. */
async function runReferences(t: Test, location: string, ...args: readonly string[]) {
  const file = join(await makeDirectory(t), "references.json");
  const run = await runHere(["references", location, ...args, "-o", file]);
  return { ...run, references: JSON.parse(await readFile(file, "utf8")) as References };
}

t.test("the command writes references that lead to the bytes that are served", async (t) => {
  const folder = await writeSources(t);
  const cases: readonly (readonly [location: string, join?: boolean])[] = [
    ["v2.zarr"],
    ["s.zarr"],
    ["stored.zip"],
    ["deflated.zip"],
    ["large.nc"],
    ["day-*.nc", true],
  ];
  const { url } = await startServer(t, {
    datasets: cases.map(([name, isJoined], index) => ({
      ...{ id: String(index), location: join(folder, name), immutable: false, encoding: {}, variables: {} },
      ...(isJoined && { join: { kind: "concat" as const, dimension: "time" } }),
    })),
  });
  for (const [index, [name, isJoined]] of cases.entries()) {
    const args = [join(folder, name), ...(isJoined ? ["--concat", "time"] : [])] as const;
    const { references, ...run } = await runReferences(t, ...args);
    t.strictSame(run, { code: 0, stdout: "", stderr: "" }, name);
    await compare(t, name, `${url}/datasets/${index}/zarr/`, references);
    const places = Object.values(references.refs).filter((each) => typeof each !== "string");
    t.equal(places.length > 0, name !== "deflated.zip", `${name}: bytes that others can read have places`);
    if (index % 2 === 1) continue;
    t.strictSame(await runHere(["references", ...args, "-o", join(folder, `${index}.parq`)]), {
      code: 0,
      stdout: "",
      stderr: "",
    });
    await compareParquet(t, join(folder, `${index}.parq`), references);
  }
});

/** Compares parquet files with the same references in JSON. */
async function compareParquet(t: Test, folder: string, { refs }: References): Promise<void> {
  const { metadata, record_size: size } = JSON.parse(await readFile(join(folder, ".zmetadata"), "utf8"));
  t.equal(size, 10_000);
  const found: Record<string, unknown> = {};
  for (const [key, document] of Object.entries<Record<string, number[]>>(metadata)) {
    found[key] = document;
    if (!key.endsWith(".zarray")) continue;
    const path = key.slice(0, -".zarray".length);
    const file = join(folder, path, "refs.0.parq");
    const rows = await readParquetRecord(file, await readFile(file));
    const grid = document.shape!.map((length, axis) => Math.ceil(length / document.chunks![axis]!));
    for (const [row, reference] of rows.entries()) {
      if (reference === undefined) continue;
      const coords: number[] = [];
      let left = row;
      for (const count of grid.toReversed()) {
        coords.unshift(left % count);
        left = Math.floor(left / count);
      }
      const value =
        "inline" in reference
          ? `base64:${Buffer.from(reference.inline).toString("base64")}`
          : [reference.url, ...(reference.part ? [reference.part.offset, reference.part.byteLength] : [])];
      found[path + (coords.join(".") || "0")] = value;
    }
  }
  const expected = Object.entries(refs).map(([key, value]) => [
    key,
    key in metadata ? JSON.parse(String(value)) : value,
  ]);
  t.same(found, Object.fromEntries(expected), folder);
}

/** Files of arrays most of whose chunks are nowhere, in each way to write keys; the last has the key of no chunk. */
const SPARSE: Readonly<Record<string, readonly [format: 2 | 3, separator: string, keys: readonly string[]]>> =
  {
    dots: [2, ".", ["3.99999", "20.7", "0.00"]],
    slashes: [2, "/", ["3/99999", "20/7", "1.1"]],
    v3: [3, "/", ["c/3/99999", "c/20/7", "c/20/x"]],
    v3dots: [3, ".", ["c.3.99999", "c.20.7", "3.1"]],
  };

t.test("stores that can be listed are asked for no chunk that they do not have", async (t) => {
  const folder = await makeDirectory(t);
  const shape = [200_000, 200_000];
  const { endpoint, requests, put } = await startS3Origin(t);
  for (const [id, [format, separator, keys]] of Object.entries(SPARSE)) {
    const documents = {
      2: { ".zarray": { ...zarray, shape, chunks: [2, 2], dimension_separator: separator } },
      3: {
        "zarr.json": {
          ...{ ...v3Array, shape, chunk_key_encoding: { name: "default", configuration: { separator } } },
          chunk_grid: { name: "regular", configuration: { chunk_shape: [2, 2] } },
        },
      },
    };
    await writeFiles(join(folder, id), {
      ...documents[format],
      ...Object.fromEntries(keys.map((key) => [key, chunk(0)])),
    });
    for (const [key, document] of Object.entries(documents[format]))
      await put("data", `${id}/${key}`, JSON.stringify(document));
    for (const key of keys) await put("data", `${id}/${key}`, chunk(0));
  }
  const stores = [{ name: "data", url: "s3://data/", endpoint, anonymous: true, redirect: true }];
  const { json } = await startServer(t, {
    datasets: Object.keys(SPARSE).map((id) => ({
      ...{ id, location: `s3://data/${id}`, immutable: false, encoding: {}, variables: {}, stores },
    })),
  });
  for (const [id, [, , keys]] of Object.entries(SPARSE)) {
    const { references, ...run } = await runReferences(t, join(folder, id));
    t.strictSame(run, { code: 0, stdout: "", stderr: "" }, id);
    const placesIn = ({ refs }: References) =>
      Object.entries(refs).filter(([key]) => !key.includes("/.z") && !key.startsWith(".z"));
    const expected = (root: string) => [
      [`${id}/3.99999`, [`${root}/${id}/${keys[0]}`]],
      [`${id}/20.7`, [`${root}/${id}/${keys[1]}`]],
    ];
    t.strictSame(placesIn(references), expected(folder), id);
    await json(`/datasets/${id}/info`);
    requests.length = 0;
    const remote = (await json(`/datasets/${id}/references.json`)) as References;
    t.strictSame(placesIn(remote), expected(`${endpoint}/data`), id);
    t.strictSame(
      requests.filter((request) => /\d$/.test(request)),
      [],
      "no request for a chunk",
    );
  }
  t.strictSame(await runHere(["references", join(folder, "v3"), "-o", join(folder, "v3.parq")]), {
    code: 0,
    stdout: "",
    stderr: "",
  });
  const record = Math.floor((3 * 100_000 + 99_999) / 10_000);
  const file = join(folder, "v3.parq", "v3", `refs.${record}.parq`);
  const rows = await readParquetRecord(file, await readFile(file));
  t.strictSame(
    rows.flatMap((row, index) => (row === undefined ? [] : [index])),
    [9_999],
  );
});

t.test("chunks are looked for shard by shard", async (t) => {
  const folder = await makeDirectory(t);
  const index = Buffer.alloc(4 * 16 + 4);
  for (let inner = 0; inner < 4; inner++) {
    index.writeBigUInt64LE(BigInt(inner), inner * 16);
    index.writeBigUInt64LE(1n, inner * 16 + 8);
  }
  const shard = Buffer.concat([chunk(0), index.subarray(0, 64)]);
  const codecs = [{ name: "bytes", configuration: { endian: "little" } }];
  const configuration = { chunk_shape: [1, 1], codecs, index_codecs: codecs, index_location: "end" };
  await writeFiles(join(folder, "s.zarr"), {
    "zarr.json": {
      ...{ ...v3Array, shape: [3, 4], codecs: [{ name: "sharding_indexed", configuration }] },
      chunk_grid: { name: "regular", configuration: { chunk_shape: [2, 2] } },
    },
    ...{ "c/0/0": shard, "c/0/1": shard, "c/1/1": shard },
  });
  const { stdout } = await runProgram(["references", "s.zarr"], { cwd: folder });
  const { refs } = JSON.parse(stdout) as References;
  t.strictSame(
    Object.entries(refs).flatMap(([key, [, offset]]) =>
      key.includes("/.z") || key.startsWith(".z") ? [] : [`${key} ${offset}`],
    ),
    ["0.0 0", "0.1 1", "1.0 2", "1.1 3", "0.2 0", "0.3 1", "1.2 2", "1.3 3", "2.2 0", "2.3 1"].map(
      (text) => `s/${text}`,
    ),
  );
  t.strictSame(await runHere(["references", join(folder, "s.zarr"), "-o", join(folder, "s.parq")]), {
    code: 0,
    stdout: "",
    stderr: "",
  });
  await compareParquet(t, join(folder, "s.parq"), { version: 1, refs });
});

t.test("the command leaves out what nobody can read elsewhere, and says so", async (t) => {
  const folder = await makeDirectory(t);
  const side = 2_100;
  const deflated = { name: "a/0.0", content: new Uint8Array(side * side), isDeflated: true };
  const array = JSON.stringify({ ...zarray, shape: [side, side], chunks: [side, side] });
  const texts = {
    ".zgroup": JSON.stringify(zgroup),
    "a/.zarray": array,
    "n/.zarray": JSON.stringify(zarray),
  };
  const entries = Object.entries(texts).map(([name, content]) => ({ name, content }));
  await writeFiles(folder, {
    "x.zip": writeZip([...entries, { name: "n/0", content: chunk(1, 2) }, deflated]),
  });
  const { code, stderr, references } = await runReferences(t, join(folder, "x.zip"));
  t.equal(code, 0);
  t.match(stderr, /^zpublish: left out 'a': more than 4194304 bytes of its chunks [^\n]+\n$/);
  t.same(Object.keys(references.refs), [".zgroup", ".zattrs", "n/.zarray", "n/.zattrs", "n/0"]);
  await runHere(["references", join(folder, "x.zip"), "-o", join(folder, "x.parq")]);
  const again = await runProgram(["references", "x.zip", "-o", "x.parq"], { cwd: folder });
  t.match(again, {
    code: 2,
    stderr: /^zpublish: --output: expected the name of a new folder, received "x.parq"/,
  });
  t.match(await runProgram(["references", "none.nc"], { cwd: folder }), { code: 1, stderr: /^zpublish: / });
});
