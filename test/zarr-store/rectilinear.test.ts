import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { compareItems, datasetAt } from "../support/clients/compare-items.js";
import { readWithZarrita } from "../support/clients/zarrita-reader.js";
import { runProgram } from "../support/servers/run-program.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { type RectilinearSpec, rectilinearFiles, writeRectilinear } from "../support/write-rectilinear.js";
import { makeDirectory, v3Array, v3Group, writeFiles } from "../support/write-store.js";

/** Six steps in chunks of 2, 2, 1 and 1, which are served in chunks of 2. */
const STEPS: RectilinearSpec = { type: "uint8", shape: [6, 2], lengths: [[2, 2, 1, 1], [2]] };

async function etagsOf({ get }: RunningServer, count: number): Promise<string[]> {
  const etags: string[] = [];
  for (let step = 0; step < count; step++) {
    const answer = await get(`/datasets/d/zarr/v/${step}.0`);
    etags.push(`${answer.status} ${answer.headers.get("etag")}`);
  }
  return etags;
}

t.test("a stored chunk of the served shape is passed through, others are put together", async (t) => {
  const directory = await makeDirectory(t);
  await writeRectilinear(directory, { ...STEPS, isCompressed: true });
  const server = await startServer(t, { datasets: [datasetAt(directory)] });
  const { get, json } = server;
  t.match(await json("/datasets/d/zarr/v/.zarray"), { chunks: [2, 2], compressor: { id: "gzip", level: 1 } });
  t.match(await json("/datasets/d/zarr3/v/zarr.json"), {
    chunk_grid: { name: "regular", configuration: { chunk_shape: [2, 2] } },
  });
  for (const step of [0, 1]) {
    const served = Buffer.from(await (await get(`/datasets/d/zarr3/v/c/${step}/0`)).arrayBuffer());
    t.strictSame(served, await readFile(join(directory, `v/c/${step}/0`)));
  }
  t.equal((await get("/datasets/d/zarr/v/2.0")).status, 200);
  t.equal((await get("/datasets/d/zarr/v/3.0")).status, 404, "is outside of the served grid");
  const { stdout } = await runProgram(["inspect", directory]);
  t.match(stdout, /passthrough \(stored in chunks of \(1–2, 2\), from which others are put together\)/);
});

t.test("a rewritten chunk changes the chunks that are made of it, and no others", async (t) => {
  const directory = await makeDirectory(t);
  await writeRectilinear(directory, { ...STEPS, shape: [7, 2], lengths: [[2, 3, 2], [2]] });
  const server = await startServer(t, { datasets: [datasetAt(directory)] });
  const before = await etagsOf(server, 4);
  t.strictSame(await etagsOf(server, 4), before);
  const rewrite = async (name: string, bytes: number[]) => {
    await writeFile(join(directory, "v/c", name), Uint8Array.from(bytes));
    const now = await etagsOf(server, 4);
    return now.map((etag, step) => etag !== before[step]);
  };
  t.strictSame(await rewrite("1/0", [1, 2, 3, 4, 5, 6]), [false, true, true, false]);
  const { get } = server;
  const chunk = await (await get("/datasets/d/zarr/v/1.0")).arrayBuffer();
  t.strictSame([...new Uint8Array(chunk)], [1, 2, 3, 4]);
  t.strictSame(await rewrite("0/0", [9, 9, 9, 9]), [true, true, true, false]);
});

t.test("a chunk without stored ones is absent, unless that means another value to clients", async (t) => {
  const directory = await makeDirectory(t);
  const isAbsent = ([step]: readonly number[]) => step! >= 2;
  await writeRectilinear(directory, { ...STEPS, isAbsent, fill: 5 });
  const server = await startServer(t, { datasets: [datasetAt(directory)] });
  const statuses = (await etagsOf(server, 3)).map((etag) => etag.slice(0, 3));
  t.strictSame(statuses, ["200", "200", "404"]);
  await writeFiles(directory, { "v/c/3/0": Uint8Array.of(1, 2) });
  const made = await (await server.get("/datasets/d/zarr/v/2.0")).arrayBuffer();
  t.strictSame([...new Uint8Array(made)], [5, 5, 1, 2]);
  await rm(join(directory, "v/c/0/0"));
  t.equal((await server.get("/datasets/d/zarr/v/0.0")).status, 404);

  const named = await makeDirectory(t);
  await writeRectilinear(named, { ...STEPS, isAbsent, fill: 5, names: ["y", "x"] });
  const { get } = await startServer(t, { datasets: [datasetAt(named)] });
  const filled = await (await get("/datasets/d/zarr/v/2.0")).arrayBuffer();
  t.strictSame([...new Uint8Array(filled)], [5, 5, 5, 5]);
});

t.test("a damaged or short chunk is an error, never absent", async (t) => {
  const directory = await makeDirectory(t);
  await writeRectilinear(directory, { ...STEPS, isCompressed: true });
  await writeFiles(directory, { "v/c/2/0": "no gzip" });
  const { get } = await startServer(t, { datasets: [datasetAt(directory)] });
  t.equal((await get("/datasets/d/zarr/v/2.0")).status, 500);
  await writeFiles(directory, { "v/c/2/0": "" });
  t.equal((await get("/datasets/d/zarr/v/2.0")).status, 500);
});

t.test("they are served in other chunks and levels, and selected from", async (t) => {
  const directory = await makeDirectory(t);
  const spec: RectilinearSpec = {
    ...{
      type: "int32",
      shape: [11, 13],
      lengths: [
        [3, 4, 3, 2],
        [5, 5, 1, 2],
      ],
      isCompressed: true,
    },
    names: ["lat", "lon"],
  };
  const items = await writeRectilinear(directory, spec);
  const { files } = rectilinearFiles({ ...spec, lengths: [[11], [13]] });
  await writeFiles(join(directory, "w"), files);
  const served = datasetAt(directory, {
    encoding: { chunks: { lat: 5, lon: 4 }, compressor: { id: "zstd", level: 1 } },
    encodings: { raw: { compressor: null, chunks: { lat: -1 } } },
    overviews: { levels: 1, method: "mean" },
  });
  const { url, get } = await startServer(t, { datasets: [served] });
  await compareItems(t, url, new Map([["v", items]]));
  const read = async (store: string, paths: readonly string[]) =>
    (await readWithZarrita(`${url}/datasets/d/${store}`, paths)).map(
      ({ items, problem }) => problem ?? items,
    );
  t.strictSame(await read("encodings/raw/zarr", ["v"]), [items]);
  const [level, expected] = await read("overviews/zarr", ["1/v", "1/w"]);
  t.strictSame(level, expected);
  t.equal(level?.length, 6 * 7);
  const picture = await get("/datasets/d/thumbnail/v.png");
  t.equal(picture.status, 200);
  const selected = Buffer.from(
    await (await get("/datasets/d/select?var=v&isel.lat=2:9&isel.lon=4:12&f=npy")).arrayBuffer(),
  );
  const expectedRows = Array.from(
    { length: 7 * 8 },
    (_, index) => items[(2 + Math.floor(index / 8)) * 13 + 4 + (index % 8)],
  );
  const values = Array.from({ length: 7 * 8 }, (_, index) =>
    selected.readInt32LE(selected.length - (56 - index) * 4),
  );
  t.strictSame(values, expectedRows);
});

t.test("a coordinate is selected by its values, also after they were rewritten in place", async (t) => {
  const directory = await makeDirectory(t);
  const lengths = [[2, 1, 2]];
  const { files } = rectilinearFiles({
    type: "uint8",
    shape: [5],
    lengths,
    names: ["x"],
    valueAt: (place) => place,
  });
  await writeFiles(directory, { "zarr.json": v3Group });
  await writeFiles(join(directory, "x"), files);
  const { get } = await startServer(t, { datasets: [datasetAt(directory)] });
  const selected = async (label: number) => {
    const answer = await get(`/datasets/d/select?var=x&x=${label}&f=npy`);
    return [answer.status, Buffer.from(await answer.arrayBuffer()).at(-1)];
  };
  t.strictSame(await selected(3), [200, 3]);
  await writeFile(join(directory, "x/c/2"), Uint8Array.of(13, 14));
  t.strictSame(await selected(13), [200, 13]);
});

t.test("what cannot be served is refused by name, and the rest is served", async (t) => {
  const directory = await makeDirectory(t);
  await writeRectilinear(directory, STEPS);
  const grid = (chunk_shapes: unknown, more = {}) => ({
    chunk_grid: { name: "rectilinear", configuration: { kind: "inline", chunk_shapes, ...more } },
  });
  const sharding = (chunk_shape: readonly number[]) => ({
    codecs: [
      {
        name: "sharding_indexed",
        configuration: {
          chunk_shape,
          codecs: [{ name: "bytes" }],
          index_codecs: [{ name: "bytes", configuration: { endian: "little" } }],
        },
      },
    ],
  });
  const bad: Record<string, [object, RegExp]> = {
    short: [grid([[1, 1]]), /sum of at least 3/],
    zero: [grid([[3, 0]]), /positive integers/],
    rank: [grid([3, 3]), /list of 1 entries/],
    kind: [grid([[1, 2]], { kind: "reference" }), /kind "inline"/],
    shards: [{ ...grid([[2, 3]]), ...sharding([2]) }, /to divide the shard's \[1\]/],
    padded: [
      { ...grid([[2, 4]], { encoded_chunk_shapes: [4] }), ...sharding([2]) },
      /no encoded_chunk_shapes beside sharding_indexed/,
    ],
    codec: [
      {
        ...grid([[1, 2]]),
        codecs: [{ name: "bytes" }, { name: "numcodecs.bz2", configuration: { level: 1 } }],
      },
      /unequal lengths and have to be put together, but .*bz2/,
    ],
    texts: [
      { ...grid([[1, 2]]), data_type: "string", fill_value: "", codecs: [{ name: "vlen-utf8" }] },
      /have to be put together, but items of .* have no fixed size/,
    ],
    large: [{ ...grid([[3, 2 ** 40]]), shape: [2 ** 40] }, /stored chunks of at most 536870912 bytes/],
  };
  for (const [name, [changes]] of Object.entries(bad))
    await writeFiles(directory, { [`${name}/zarr.json`]: { ...v3Array, shape: [3], ...changes } });
  const { lines, json, get } = await startServer(t, { datasets: [datasetAt(directory)] });
  t.equal((await get("/datasets/d/zarr/v/2.0")).status, 200);
  for (const [name, [, reason]] of Object.entries(bad)) {
    const line = lines.find(({ msg, path }) => msg === "refused" && path === name);
    t.match(line, { reason }, name);
    t.equal((await get(`/datasets/d/zarr/${name}/.zarray`)).status, 404);
  }
  t.strictSame(Object.keys(((await json("/datasets/d/zarr/.zmetadata")) as { metadata: object }).metadata), [
    ...[".zattrs", ".zgroup", "v/.zarray", "v/.zattrs"],
  ]);
});

t.test("in one of several files such an array is refused, and others are joined", async (t) => {
  const directory = await makeDirectory(t);
  for (const part of ["a.zarr", "b.zarr"]) {
    await writeRectilinear(join(directory, part), { ...STEPS, names: ["y", "x"] });
    const time = {
      ...v3Array,
      shape: [1],
      chunk_grid: { name: "regular", configuration: { chunk_shape: [1] } },
    };
    await writeFiles(join(directory, part), {
      "time/zarr.json": { ...time, dimension_names: ["time"] },
      "time/c/0": Uint8Array.of(part === "a.zarr" ? 1 : 2),
    });
  }
  const join_ = { kind: "concat", dimension: "time" } as const;
  const { lines, json } = await startServer(t, {
    datasets: [datasetAt(join(directory, "*.zarr"), { join: join_ })],
  });
  t.match(await json("/datasets/d/zarr/time/.zarray"), { shape: [2] });
  t.match(
    lines.find(({ msg, path }) => msg === "refused" && path === "v"),
    { reason: /chunks of equal lengths/ },
  );
});
