import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import parsePoints from "../../../src/plugins/select/parse-points.js";
import { type AxisQuery, parseSelection } from "../../../src/plugins/select/parse-selection.js";
import { rowsOf } from "../../support/point-rows.js";

const FORMATS = ["nc", "csv", "json", "npy", "arrow"];
const parse = (query: string, isOfPoints = false) => parseSelection(query, FORMATS, isOfPoints);
const label = (text: string, method = "exact") => ({ text, method });

t.test("labels, ranges and indexes are read as they are meant", async (t) => {
  const cases: [string, unknown][] = [
    ["lat=40", { kind: "labels", labels: [label("40")] }],
    ["lat=-0.5&lat=1e3", { kind: "labels", labels: [label("-0.5"), label("1e3")] }],
    ["lat=nearest::8.6", { kind: "labels", labels: [label("8.6", "nearest")] }],
    ["lat=ffill::1&lat=bfill::2", { kind: "labels", labels: [label("1", "ffill"), label("2", "bfill")] }],
    ["lat=exact::km/h", { kind: "labels", labels: [label("km/h")] }],
    ["lat=40/60", { kind: "range", from: "40", to: "60", step: 1, text: "40/60" }],
    ["lat=40%2F60", { kind: "range", from: "40", to: "60", step: 1, text: "40/60" }],
    ["lat=40/..", { kind: "range", from: "40", to: undefined, step: 1, text: "40/.." }],
    ["lat=../60", { kind: "range", from: undefined, to: "60", step: 1, text: "../60" }],
    ["lat=../..&step.lat=3", { kind: "range", from: undefined, to: undefined, step: 3, text: "../.." }],
    ["isel.lat=5", { kind: "indexes", indexes: [5] }],
    ["isel.lat=5&isel.lat=-1", { kind: "indexes", indexes: [5, -1] }],
    ["isel.lat=1:5:2", { kind: "slice", begin: 1, end: 5, step: 2, text: "1:5:2" }],
    ["isel.lat=:", { kind: "slice", begin: undefined, end: undefined, step: 1, text: ":" }],
    ["isel.lat=::-1", { kind: "slice", begin: undefined, end: undefined, step: -1, text: "::-1" }],
    ["isel.lat=-3:", { kind: "slice", begin: -3, end: undefined, step: 1, text: "-3:" }],
  ];
  for (const [query, expected] of cases)
    t.strictSame(parse(query).axes.get("lat")?.query, expected as AxisQuery, query);
});

t.test("variables, format and decoding are read", async (t) => {
  const query = parse("var=t2m&var=a/b/u10&f=nc&decode=1&token=secret");
  t.strictSame(query.variables, ["t2m", "a/b/u10"]);
  t.equal(query.format, "nc");
  t.equal(query.isDecoded, true);
  t.equal(query.axes.size, 0);
  const points = parse("method=nearest&tolerance=PT6H", true);
  t.same([points.method, points.tolerance], ["nearest", "PT6H"]);
});

t.test("each wrong query is refused with what was expected and received", async (t) => {
  const cases: [query: string, parameter: string, type: string, message: RegExp][] = [
    ["f=grib", "f", "enum", /one of nc, csv, json, npy, arrow, received 'grib'/],
    ["f=nc&f=csv", "f", "repeated_parameter", /once, received 'nc and csv'/],
    ["decode=yes", "decode", "enum", /0 or 1, received 'yes'/],
    ["method=nearest", "method", "not_applicable", /points/],
    ["tolerance=1", "tolerance", "not_applicable", /points/],
    ["lat=", "lat", "missing", /a label/],
    ["lat=linear::3", "lat", "enum", /a method of exact, nearest/],
    ["lat=nearest::", "lat", "missing", /a label/],
    ["lat=1/2/3", "lat", "range", /received '1\/2\/3'/],
    ["lat=1/", "lat", "range", /a\/\.\./],
    ["lat=1/2&lat=3", "lat", "contradiction", /one range/],
    ["lat=1/2&lat=3/4", "lat", "contradiction", /one range/],
    ["lat=1&isel.lat=2", "isel.lat", "contradiction", /either it or 'lat'/],
    ["isel.lat=1.5", "isel.lat", "slice_parsing", /received '1.5'/],
    ["isel.lat=1:2:0", "isel.lat", "slice_parsing", /step that is not 0/],
    ["isel.lat=1:2&isel.lat=3", "isel.lat", "contradiction", /one slice/],
    ["isel.lat=", "isel.lat", "slice_parsing", /received ''/],
    ["step.lat=2", "step.lat", "not_applicable", /lat=a\/b/],
    ["lat=3&step.lat=2", "step.lat", "not_applicable", /lat=a\/b/],
    ["lat=1/2&step.lat=0", "step.lat", "int_parsing", /from 1 on, received '0'/],
    ["lat=1/2&step.lat=1&step.lat=2", "step.lat", "int_parsing", /received '1,2'/],
  ];
  for (const [query, parameter, type, message] of cases) {
    const error = thrownBy(() => parse(query));
    t.equal(error?.code, "invalid-query", query);
    t.match({ ...error?.details, message: error?.message }, { parameter, type, message }, query);
  }
  t.match(thrownBy(() => parse("method=linear", true))?.details, { parameter: "method", type: "enum" });
  t.match(thrownBy(() => parse("tolerance=1", true))?.message, /a method besides exact/);
});

t.test("points are read from CSV as it is quoted", async (t) => {
  const read = (body: Uint8Array, contentType?: string) => parsePoints({ body, contentType });
  const csv = (text: string) => read(Buffer.from(text), "text/csv; charset=utf-8");
  t.strictSame(await rowsOf(csv("lat,lon\n1,2\n3,4\n")), {
    names: ["lat", "lon"],
    rows: [
      ["1", "2"],
      ["3", "4"],
    ],
  });
  t.strictSame(await rowsOf(csv('\ufefflat,"a, ""b"""\r\n1, x \r\n\r\n2,"y\n"')), {
    names: ["lat", 'a, "b"'],
    rows: [
      ["1", "x"],
      ["2", "y\n"],
    ],
  });
  t.strictSame(await rowsOf(csv("lat\n1")), { names: ["lat"], rows: [["1"]] });
  t.strictSame((await rowsOf(csv("lat,x\n1,\n"))).rows, [["1", ""]]);
  const wrong: [string, RegExp][] = [
    ["lat,lon\n", /at least one point/],
    ["", /at least one point/],
    ["lat,lon\n1\n", /2 fields in row 1, received '1'/],
    ["lat,lat\n1,2\n", /columns with different names/],
    ["lat,\n1,2\n", /columns with different names/],
    ['lat,lon\n1,"2\n', /a field of CSV in line 2/],
    ['lat,lon\n1,2"3"\n', /a field of CSV in line 2/],
  ];
  for (const [text, message] of wrong) {
    const error = thrownBy(() => csv(text));
    t.equal(error?.code, "invalid-body", text);
    t.match(error?.message, message, text);
  }
  t.equal(thrownBy(() => read(Buffer.from([0xff]), "text/csv"))?.code, "invalid-body");
  t.equal(thrownBy(() => read(Buffer.from("a"), "text/html"))?.code, "unsupported-media-type");
  t.equal(thrownBy(() => read(Buffer.from("a")))?.code, "unsupported-media-type");
});

t.test("points are read from GeoJSON, with properties", async (t) => {
  const parse = (text: string, contentType: string) => parsePoints({ body: Buffer.from(text), contentType });
  const read = (value: unknown) => parse(JSON.stringify(value), "application/geo+json");
  const point = { type: "Point", coordinates: [8.5, 50.25] };
  t.strictSame(await rowsOf(read(point)), { names: ["lon", "lat"], rows: [["8.5", "50.25"]] });
  const features = [
    { type: "Feature", properties: { id: "a", n: 1 }, geometry: { ...point, coordinates: [1, 2, 3] } },
    { type: "Feature", properties: null, geometry: point },
    {
      type: "Feature",
      properties: { id: { x: 1 } },
      geometry: {
        type: "MultiPoint",
        coordinates: [
          [1, 2],
          [3, 4],
        ],
      },
    },
  ];
  t.strictSame(await rowsOf(read({ type: "FeatureCollection", features })), {
    names: ["lon", "lat", "z", "id", "n"],
    rows: [
      ["1", "2", "3", "a", "1"],
      ["8.5", "50.25", "", "", ""],
      ["1", "2", "", '{"x":1}', ""],
      ["3", "4", "", '{"x":1}', ""],
    ],
  });
  for (const wrong of [
    { type: "LineString", coordinates: [] },
    { type: "Point", coordinates: ["a", 1] },
    { type: "Point", coordinates: [1] },
    { type: "Feature", geometry: null },
    [],
    null,
    { type: "FeatureCollection", features: [] },
  ])
    t.equal(thrownBy(() => read(wrong))?.code, "invalid-body", JSON.stringify(wrong));
  t.match(thrownBy(() => parse("{", "application/json"))?.message, /Expected JSON/);
});

function thrownBy(run: () => unknown): ZpublishError | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof ZpublishError) return error;
    throw error;
  }
  return undefined;
}
