import { join } from "node:path";
import t from "tap";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import {
  formatCollection,
  formatInspection,
  type InspectedVariable,
  type Inspection,
  inspectCollection,
  inspectPieces,
  inspectTree,
} from "../../src/cli/inspect.js";
import type { DatasetProvider } from "../../src/dataset/dataset-provider.js";
import { createFileSource } from "../../src/formats/file-source.js";
import { parseDataType } from "../../src/model/data-type.js";
import { createFileStore } from "../../src/stores/file-store.js";
import {
  type ChunkPiece,
  type PartChunkReader,
  type PartChunks,
  PIECED,
  type PieceLayout,
} from "../../src/zarr/chunk-reader.js";
import type { CodecStep } from "../../src/zarr/codec-step.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { runProgram } from "../support/servers/run-program.js";
import { writeZarrPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const demo = await makeDemoData(join(await makeDirectory(t), "demo"));

t.test("inspect shows a flat v2 store, whose chunks are passed through", async (t) => {
  const { code, stdout, stderr } = await runProgram(["inspect", demo.air]);
  t.equal(code, 0, stderr);
  t.equal(stderr, "");
  t.match(stdout, /\n\/ {2}\(4 attributes\)\n/);
  t.match(
    stdout,
    /\n {2}air +int16 +\(time: 2920, lat: 25, lon: 53\) +\(146, 25, 53\) +blosc\(lz4\) +7\.4 MiB +passthrough\n/,
  );
  t.match(stdout, /\n1 group, 4 variables, [^\n]*: 4 passthrough, 0 transcoded, 0 refused\n$/);
});

t.test("inspect shows a v3 tree with shards, and --json has the same content", async (t) => {
  const text = await runProgram(["inspect", demo.climate]);
  t.equal(text.code, 0, text.stderr);
  t.match(text.stdout, /\n\/surface\/daily {2}\(1 attribute\)\n/);
  const { code, stdout } = await runProgram(["inspect", "--json", demo.climate]);
  t.equal(code, 0);
  const inspection = JSON.parse(stdout) as Inspection;
  t.strictSame(
    inspection.groups.map(({ path }) => path),
    ["/", "/profiles", "/regional", "/surface", "/surface/daily", "/surface/monthly"],
  );
  t.strictSame(inspection.refused, []);
  t.match(
    inspection.overviews.map(({ path, shape }) => [path, shape]),
    [
      ["0/surface/daily/sst", [365, 45, 90]],
      ["1/surface/daily/sst", [365, 23, 45]],
      ["2/surface/daily/sst", [365, 12, 23]],
    ],
  );
  const variables = inspection.groups.flatMap((group) => group.variables);
  t.match(
    variables.find(({ path }) => path === "surface/daily/sst"),
    {
      dtype: "float32",
      dims: ["time", "lat", "lon"],
      shape: [365, 45, 90],
      storedChunks: [30, 15, 30],
      shards: [120, 45, 90],
    },
  );
  t.match(
    variables.find(({ path }) => path === "surface/mask"),
    { dtype: "int8", byteLength: 4050 },
  );
  t.match(
    variables.find(({ path }) => path === "profiles/station_name"),
    { dtype: "object", byteLength: null },
  );
});

t.test("a location without a dataset is one clear line and exit code 1", async (t) => {
  const cwd = t.testdir({ "empty.zarr": {}, "corrupt.zarr": { ".zgroup": "{" } });
  for (const location of ["absent.zarr", "empty.zarr", "corrupt.zarr"]) {
    const { code, stdout, stderr } = await runProgram(["inspect", location], { cwd });
    t.equal(code, 1, location);
    t.equal(stdout, "", location);
    t.match(stderr, /^zpublish: [^\n]+\n$/, location);
    t.ok(stderr.includes(location), `${location} is named: ${stderr}`);
  }
});

t.test("inspect says of each array of a file which way its chunks are served", async (t) => {
  const directory = await makeDirectory(t);
  const listed = {
    kind: "listed",
    offsets: Float64Array.of(0, 8),
    byteLengths: Uint32Array.of(8, 8),
    variants: Uint8Array.of(0, 1),
  } as const;
  const shape = { shape: [8], chunkShape: [4] };
  const inner = { codecs: [{ id: "pad", byteLength: 4 }], servedFilters: [], servedCompressor: null };
  const arrays = [
    plainArray({ name: "a", ...shape, chunks: { ...listed, variants: Uint8Array.of(0, 0) } }),
    plainArray({ name: "b", ...shape, variants: [[{ id: "zlib", level: 1 }]], chunks: listed }),
    plainArray({ name: "c", ...shape, chunks: { kind: "made", recipe: null } }),
    plainArray({ name: "d", shape: [2], chunkShape: [2], chunks: { kind: "inline", bytes: null } }),
    plainArray({ name: "e", ...shape, ...inner, variants: [[]], chunks: listed }),
  ];
  await writeFiles(directory, { x: plainFile({ arrays, data: new Uint8Array(9) }) });
  const source = createFileSource({
    ...{ location: "x", store: createFileStore(directory), key: "x", freshness: "always" },
    formats: [plainFormat],
  });
  const { format, groups } = await inspectTree("x", await source.readTree());
  t.equal(format, "Plain");
  t.same(
    groups[0]?.variables.map(({ name, served, reason, way }) => [name, served, reason, way]),
    [
      ["a", "passthrough", null, "by range"],
      ["b", "passthrough", null, "by range, 1 of 2 chunks have other codecs and are made"],
      ["c", "passthrough", null, "put together from parts of the file"],
      ["d", "passthrough", null, "from the index"],
      [
        "e",
        "transcoded",
        "recompress: pad becomes no codec",
        "by range, 1 of 2 chunks have other codecs and are made",
      ],
    ],
  );
});

t.test("inspect shows which file gives which steps, and why chunks are put together", async (t) => {
  const cwd = await makeDirectory(t);
  await writeZarrPart(cwd, "a.zarr", { first: 0, count: 3, chunk: 2 });
  await writeZarrPart(cwd, "b.zarr", { first: 3, count: 2, chunk: 2 });
  const { code, stdout, stderr } = await runProgram(["inspect", "*.zarr", "--concat", "time"], { cwd });
  t.equal(code, 0, stderr);
  t.match(
    stdout,
    `*.zarr

2 files one behind the other along time, 5 steps
  steps  file
  0–2    a.zarr
  3–4    b.zarr
`,
  );
  t.match(
    stdout,
    / {2}v .* passthrough \(2 of 3 chunks are put together from several files, since files begin or end within chunks\)\n/,
  );
  const json = JSON.parse(
    (await runProgram(["inspect", "--json", ".", "--concat", "time"], { cwd })).stdout,
  ) as Inspection;
  t.same(json.join?.parts, [
    { name: "a.zarr", start: 0, length: 3 },
    { name: "b.zarr", start: 3, length: 2 },
  ]);
  const variables = json.groups.flatMap((group) => group.variables);
  t.match(variables.find(({ name }) => name === "v")?.pieces, { passed: 1, joined: 2 });
});

t.test("inspect lists the datasets of a folder or a pattern, and opens none", async (t) => {
  const cwd = await makeDirectory(t);
  await writeFiles(cwd, {
    "2024/a.nc": "no NetCDF",
    "2024/b~.nc": "",
    "c.zarr/.zgroup": "no JSON",
    "d.txt": "",
  });
  const folder = await runProgram(["inspect", "."], { cwd });
  t.match(folder, { code: 0, stderr: "" });
  t.match(folder.stdout, /: 2 datasets, listed in [\d.]+ s\n/);
  t.match(folder.stdout, /\n {2}2024~a\.nc {2}.*\/2024\/a\.nc\n {2}c\.zarr {5}.*\/c\.zarr\n/);
  t.match(folder.stdout, /\n1 problem:\n {2}2024\/b~\.nc: expected a name without "~"/);
  const { stdout } = await runProgram(["inspect", "--json", "x=**/*.nc"], { cwd });
  t.match(JSON.parse(stdout), { datasets: [{ id: "x~2024~a.nc" }], problems: [{ name: "2024/b~.nc" }] });
});

function providerOf(ids: readonly string[]): DatasetProvider {
  return {
    ...{ name: "archive", prefix: "archive~", close: async () => undefined },
    list: async () => ids,
    async open(id) {
      if (id === "gone") return undefined;
      return {
        id,
        location: `/data/${id.replaceAll("~", "/")}`,
        immutable: false,
        encoding: {},
        variables: {},
      };
    },
    problems: () => [{ name: "a\u001bb.nc", reason: "no valid name" }],
  };
}

t.test("a collection has ids and locations, sorted, and problems", async (t) => {
  const found = await inspectCollection("/data", providerOf(["b.nc", "2024~a.nc", "gone"]));
  t.match(found, {
    location: "/data",
    datasets: [
      { id: "archive~2024~a.nc", location: "/data/2024/a.nc" },
      { id: "archive~b.nc", location: "/data/b.nc" },
    ],
    problems: [{ reason: "no valid name" }],
  });
  t.match(
    formatCollection({ ...found, seconds: 0.25 }),
    `/data: 2 datasets, listed in 0.25 s

  id                 location
  archive~2024~a.nc  /data/2024/a.nc
  archive~b.nc       /data/b.nc

1 problem:
  a\\x1bb.nc: no valid name
`,
  );
});

t.test("of many datasets and problems, the first and the last are shown", async (t) => {
  const ids = Array.from({ length: 1_000 }, (_, index) => `d${String(index).padStart(3, "0")}`);
  const found = await inspectCollection("/data", providerOf(ids));
  const problems = ids.map((name) => ({ name, reason: "broken" }));
  const lines = formatCollection({ ...found, problems }).split("\n");
  t.equal(lines.length, 1 + 2 + 21 + 2 + 21 + 1);
  t.same(
    lines.filter((line) => line.includes("…")),
    ["  … 980 more", "  … 980 more"],
  );
  t.match(lines[13], /^ {2}… 980 more$/);
  t.match(lines[14], /archive~d990/);
});

t.test("an empty folder has no table", async (t) => {
  const empty = { location: "/data", datasets: [], problems: [], seconds: 0.001 };
  t.equal(formatCollection(empty), "/data: 0 datasets, listed in 0.001 s\n");
});

const ZLIB: CodecStep = {
  ...{ codec: { id: "zlib", level: 1 }, decodedByteLength: 8, maxDecodedByteLength: 8, itemSize: 1 },
};
const LAYOUT: PieceLayout = {
  ...{ name: "x", title: "x", chunkShape: [2, 4], axisOrder: [0, 1], itemSize: 1, decode: [ZLIB] },
  ...{ variants: [], maxStoredByteLength: undefined, fillItem: null, conversion: undefined },
};

/** A tree of one array of 5 × 2 chunks along steps and columns. @param layouts Of the pieces of each chunk; one if it is passed through. */
function treeOf(layouts: readonly (readonly Partial<PieceLayout>[])[], asked: number[] = []): StoredTree {
  const reader = {
    parts: {
      variantOf: ([step]: readonly number[]) => (layouts[step as number]?.length === 1 ? 0 : PIECED),
      async piecesOf([step]: readonly number[]) {
        asked.push(step as number);
        return (layouts[step as number] ?? []).map(
          (layout) => ({ layout: { ...LAYOUT, ...layout } }) as ChunkPiece,
        );
      },
    },
  } as unknown as PartChunkReader;
  const array: StoredArray = {
    ...{ name: "v", path: "v", shape: [layouts.length * 2, 7], chunkShape: [2, 4], axisOrder: [0, 1] },
    ...{
      dataType: parseDataType("|u1"),
      codecs: [{ id: "zlib", level: 1 }],
      compressorCount: 1,
      variants: [[]],
    },
    fill: { served: 0, item: null, absentIsServed: true },
    ...{ dimNames: ["time", "x"], attrs: {} },
    chunks: { kind: "parts", store: "s", path: "v", axis: 0, openReader: () => reader },
  };
  return {
    groups: [{ path: "/", attrs: {}, arrays: [array] }],
    join: { kind: "concat", dimension: "time", parts: [{ name: "a", start: 0, length: layouts.length * 2 }] },
    ...{ refused: [], warnings: [], identity: "i", fingerprint: undefined },
  };
}

async function piecesOf(...layouts: readonly (readonly Partial<PieceLayout>[])[]) {
  return (await inspectPieces(treeOf(layouts))).get("v");
}

t.test("chunks that are passed through and those that are put together are counted", async (t) => {
  t.same(await piecesOf([{}], [{}]), { passed: 4, joined: 0, reasons: [] });
  t.same(await piecesOf([{}], [{}, {}], [{}]), {
    ...{ passed: 4, joined: 2, reasons: ["files begin or end within chunks"] },
  });
});

t.test("the reasons are what differs between files", async (t) => {
  const reasonsOf = async (...layouts: readonly (readonly Partial<PieceLayout>[])[]) =>
    (await piecesOf(...layouts))?.reasons;
  const lengths = [31, 28, 30, 29].map((length) => ({ chunkShape: [length, 4] }));
  t.same(await reasonsOf(lengths.slice(0, 2)), ["chunk lengths differ: 31 and 28"]);
  t.same(await reasonsOf(lengths), ["chunk lengths differ: 31, 28, 30 and 1 more"]);
  t.same(
    await reasonsOf([{}], lengths.slice(0, 2)),
    ["chunk lengths differ: 2, 31 and 28"],
    "the others' length, too",
  );
  t.same(await reasonsOf([{}, { chunkShape: [2, 7] }]), ["chunk shapes differ: (2, 4) and (2, 7)"]);
  t.same(await reasonsOf([{}, { decode: [] }]), ["codecs differ: zlib and none"]);
  t.same(await reasonsOf([{}, { axisOrder: [1, 0] }]), ["orders of axes differ: (0, 1) and (1, 0)"]);
});

t.test("an array of one file is no array of pieces", async (t) => {
  const tree = treeOf([[{}]]);
  const arrays = tree.groups.flatMap((group) => group.arrays);
  const alone = arrays.map((array) => ({ ...array, chunks: { ...array.chunks, axis: -1 } as PartChunks }));
  t.equal((await inspectPieces({ ...tree, groups: [{ path: "/", attrs: {}, arrays: alone }] })).size, 0);
});

t.test("the files of few chunks are opened for the reasons", async (t) => {
  const asked: number[] = [];
  await inspectPieces(
    treeOf(
      Array.from({ length: 100 }, () => [{}, {}]),
      asked,
    ),
  );
  t.same(asked, [0, 1, 2, 3]);
});

t.test("an inspection has the files of a joined dataset, and how each array's chunks are made", async (t) => {
  const { join, groups } = await inspectTree("x", treeOf([[{}], [{}, { decode: [] }]]));
  t.same(join, { kind: "concat", dimension: "time", parts: [{ name: "a", start: 0, length: 4 }] });
  t.equal(
    groups[0]?.variables[0]?.way,
    "2 of 4 chunks are put together from several files, since codecs differ: zlib and none",
  );
  t.same(groups[0]?.variables[0]?.pieces, {
    passed: 2,
    joined: 2,
    reasons: ["codecs differ: zlib and none"],
  });
});

const air: InspectedVariable = {
  name: "air",
  path: "air",
  dtype: "int16",
  dims: ["time", "lat"],
  shape: [1460, 25],
  storedChunks: [146, 25],
  servedChunks: [146, 25],
  shards: null,
  codecs: [
    { id: "shuffle", elementsize: 2 },
    { id: "blosc", cname: "lz4" },
  ],
  byteLength: 73_000,
  served: "passthrough",
  zarr3: "chunks",
  reason: null,
  way: null,
  pieces: null,
  attrs: {},
};

t.test("an inspection is a table of each group, refused arrays, warnings and a sum", async (t) => {
  const text = formatInspection({
    location: "data/air.zarr",
    format: null,
    join: null,
    groups: [
      { path: "/", attrs: { title: "x" }, variables: [air] },
      { path: "/empty", attrs: {}, variables: [] },
      {
        path: "/b",
        attrs: {},
        variables: [
          {
            ...air,
            name: "scalar",
            path: "b/scalar",
            dtype: "object",
            dims: [],
            shape: [],
            storedChunks: [],
            codecs: [],
            byteLength: null,
            served: "transcoded",
            reason: "recompress: crc32c becomes no codec",
            zarr3: "files",
          },
        ],
      },
    ],
    refused: [{ path: "b/odd", reason: "unknown codec 'x'\u001b[2J" }],
    warnings: ["name 'a#b' must be percent-encoded"],
    overviews: [
      { level: 0, path: "0/air", dtype: "int16", shape: [1460, 25], chunks: [146, 25], byteLength: 73000 },
      { level: 1, path: "1/air", dtype: "float32", shape: [1460, 13], chunks: [146, 13], byteLength: 75920 },
    ],
  });
  t.equal(
    text,
    `data/air.zarr

/  (1 attribute)
  variable  type    dimensions             chunks     codecs                size      served
  air       int16   (time: 1460, lat: 25)  (146, 25)  shuffle → blosc(lz4)  71.3 KiB  passthrough

/empty

/b
  variable  type    dimensions             chunks     codecs                size      served
  scalar    object  ()                     ()         none                  unknown   transcoded (recompress: crc32c becomes no codec); in v3 as stored

refused: b/odd: unknown codec 'x'\\x1b[2J
warning: name 'a#b' must be percent-encoded

3 groups, 2 variables, 71.3 KiB: 1 passthrough, 1 transcoded, 1 refused
overviews, if they are asked for: 0/air (1460, 25) 71.3 KiB → 1/air (1460, 13) 74.1 KiB
`,
  );
});

t.test("an inspection of a file says its format, and the way of its chunks", async (t) => {
  const inFile = { ...air, way: "by range, 3 of 10 chunks have other codecs and are made" };
  const text = formatInspection({
    location: "data/air.nc",
    format: "NetCDF-4",
    join: null,
    groups: [
      {
        path: "/",
        attrs: {},
        variables: [
          inFile,
          { ...inFile, served: "transcoded", reason: "recompress: lzf becomes blosc(lz4)", way: "by range" },
        ],
      },
    ],
    refused: [],
    warnings: [],
    overviews: [],
  });
  t.match(text, /^data\/air\.nc: NetCDF-4\n/);
  t.match(text, / passthrough \(by range, 3 of 10 chunks have other codecs and are made\)\n/);
  t.match(text, / transcoded \(recompress: lzf becomes blosc\(lz4\); by range\)\n/);
});

t.test("an inspection of a joined dataset says which file gives which steps", async (t) => {
  const partsOf = (lengths: readonly number[]) => {
    let start = 0;
    return lengths.map((length, index) => {
      const part = { name: `2024/${index}.nc`, start, length };
      start += length;
      return part;
    });
  };
  const inspection = {
    ...{ location: "data/*.nc", format: "NetCDF-4", refused: [], warnings: [], overviews: [] },
    groups: [{ path: "/", attrs: {}, variables: [air] }],
  };
  const textOf = (kind: "concat" | "stack", lengths: readonly number[]) =>
    formatInspection({ ...inspection, join: { kind, dimension: "time", parts: partsOf(lengths) } });
  t.match(
    textOf("concat", [31, 28, 0, 1]),
    `data/*.nc: NetCDF-4

4 files one behind the other along time, 60 steps
  steps  file
  0–30   2024/0.nc
  31–58  2024/1.nc
  none   2024/2.nc
  59     2024/3.nc

/
`,
  );
  t.match(
    textOf(
      "stack",
      Array.from({ length: 8_760 }, () => 1),
    ),
    `8760 files one step each along time, 8760 steps
  steps  file
  0      2024/0.nc
  1      2024/1.nc
  2      2024/2.nc
  3      2024/3.nc
  … 8752 more
  8756   2024/8756.nc
  8757   2024/8757.nc
  8758   2024/8758.nc
  8759   2024/8759.nc

`,
  );
});
