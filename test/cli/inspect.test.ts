import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t from "tap";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import { formatInspection, type Inspection, inspectTree } from "../../src/cli/inspect.js";
import { createFileSource } from "../../src/formats/file-source.js";
import { createFileStore } from "../../src/stores/file-store.js";
import { plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { runHere, runProgram } from "../support/servers/run-program.js";
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
    const { code, stderr } = await runHere(["inspect", join(cwd, location)]);
    t.equal(code, 1, location);
    t.match(stderr, /^zpublish: [^\n]+\n$/, location);
    t.ok(stderr.includes(location), `${location} is named: ${stderr}`);
  }
});

t.test("what a server answers for a remote location is named", async (t) => {
  const server = createServer((request, response) => {
    response.writeHead(request.url?.startsWith("/secret") ? 403 : 404).end("no");
  }).listen(0, "127.0.0.1");
  t.teardown(() => server.close());
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const [path, reason] of [
    ["x.zarr", ": the server answers 404 Not Found"],
    ["x.nc", ": the server answers 404 Not Found"],
    ["x.zarr/", ": the server answers 404 Not Found for .zgroup, .zarray, .zmetadata and zarr.json"],
    ["secret.nc", "/ refuses it (it answers 403 Forbidden)"],
  ] as const) {
    const { code, stderr } = await runHere(["inspect", `${origin}/${path}`]);
    t.equal(code, 1);
    t.ok(stderr.endsWith(`${origin}/${path}${reason}\n`), stderr);
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
    plainArray({ name: "c", ...shape, chunks: { kind: "made", recipe: {} } }),
    plainArray({ name: "d", shape: [2], chunkShape: [2], chunks: { kind: "inline", bytes: null } }),
    plainArray({ name: "e", ...shape, ...inner, variants: [[]], chunks: listed }),
  ];
  await writeFiles(directory, { x: plainFile({ arrays, data: new Uint8Array(9) }) });
  const source = createFileSource({
    ...{ location: "x", store: createFileStore(directory), key: "x", freshness: "always" },
    formats: [plainFormat],
  });
  const { format, groups } = inspectTree("x", await source.readTree());
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
  t.match(stdout, / {2}v .* passthrough \(2 of 3 chunks are put together from several files\)\n/);
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

const air: Inspection["groups"][number]["variables"][number] = {
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
  values: null,
  pieces: null,
  portable: "recompress: shuffle becomes blosc(lz4)",
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
            values: "scale_offset decoded: why",
            zarr3: "files",
            portable: "left out: array 'b/scalar': no name",
          },
        ],
      },
    ],
    refused: [{ path: "b/odd", reason: "unknown codec 'x'\u001b[2J" }],
    warnings: ["name 'a#b' must be percent-encoded"],
  });
  t.equal(
    text,
    `data/air.zarr

/  (1 attribute)
  variable  type    dimensions             chunks     codecs                size      served
  air       int16   (time: 1460, lat: 25)  (146, 25)  shuffle → blosc(lz4)  71.3 KiB  passthrough; in portable v3 recompress: shuffle becomes blosc(lz4)

/empty

/b
  variable  type    dimensions             chunks     codecs                size      served
  scalar    object  ()                     ()         none                  unknown   transcoded (recompress: crc32c becomes no codec; scale_offset decoded: why); in v3 as stored; in portable v3 left out: array 'b/scalar': no name

refused: b/odd: unknown codec 'x'\\x1b[2J
warning: name 'a#b' must be percent-encoded

3 groups, 2 variables, 71.3 KiB: 1 passthrough, 1 transcoded, 1 refused
`,
  );
});
