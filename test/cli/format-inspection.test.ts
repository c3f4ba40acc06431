import t from "tap";
import { formatInspection, type InspectedVariable } from "../../src/cli/inspect.js";

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

t.test("an inspection is a table of each group, refused arrays, warnings and a sum", (t) => {
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
  t.end();
});

t.test("an inspection of a file says its format, and the way of its chunks", (t) => {
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
  t.end();
});

t.test("an inspection of a joined dataset says which file gives which steps", (t) => {
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
  t.end();
});
