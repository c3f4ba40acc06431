import t from "tap";
import { formatInspection } from "../../src/cli/format-inspection.js";
import type { InspectedVariable } from "../../src/cli/inspect.js";

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
  attrs: {},
};

t.test("an inspection is a table of each group, refused arrays, warnings and a sum", (t) => {
  const text = formatInspection({
    location: "data/air.zarr",
    format: null,
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
