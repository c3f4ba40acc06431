import { deflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

/** Packed temperatures of 4 days, 3 latitudes and 4 longitudes: item `i` is stored as `i`. */
function air() {
  const axis = (name: string, values: readonly number[], units: string) => ({
    ...{ name, data: Float64Array.from(values), shape: [values.length], dims: [name], attrs: { units } },
  });
  const arrays = [
    axis("time", [0, 1, 2, 3], "days since 2000-01-01"),
    axis("lat", [60, 50, 40], "degrees_north"),
    axis("lon", [0, 90, 180, 270], "degrees_east"),
    {
      ...{ name: "t2m", shape: [4, 3, 4], dims: ["time", "lat", "lon"], chunks: [2, 3, 2], fillValue: 47 },
      data: Int16Array.from({ length: 48 }, (_, index) => index),
      attrs: { scale_factor: 0.5, units: "K" },
    },
    { name: "count", data: Int32Array.of(7, 8, 9, 10), shape: [4], dims: ["time"] },
    { name: "spectrum", data: new Float32Array(6), dtype: "<c8", shape: [3], dims: ["lat"] },
  ];
  const groups = [{ path: "/", attrs: { title: "air" }, arrays }];
  return datasetOf("air", createMemorySource({ location: "air", groups }));
}

const datasetAt = (id: string, location: string) => ({
  id,
  location,
  immutable: false,
  encoding: {},
  variables: {},
});
const start = (t: Test, more: Parameters<typeof startServer>[1] = {}) =>
  startServer(t, { datasets: [air()], ...more });
const SELECT = "/datasets/air/select";

t.test("a piece is answered as JSON, CSV, NetCDF, npy and Arrow", async (t) => {
  const { get, json } = await start(t);
  t.strictSame(await json(`${SELECT}?var=t2m&time=2000-01-02&lat=50/40&lon=-90`), {
    coords: {
      time: { dims: [], attrs: {}, data: "2000-01-02T00:00:00" },
      lat: { dims: ["lat"], attrs: { units: "degrees_north" }, data: [50, 40] },
      lon: { dims: [], attrs: { units: "degrees_east" }, data: 270 },
    },
    attrs: { title: "air" },
    dims: { lat: 2 },
    data_vars: { t2m: { dims: ["lat"], attrs: { units: "K" }, data: [9.5, 11.5] } },
  });
  const csv = await get(`${SELECT}?lat=nearest::41&lon=nearest::8&f=csv`);
  t.equal(csv.headers.get("content-type"), "text/csv; charset=utf-8");
  const rows = ["4.0", "10.0", "16.0", "22.0"].map(
    (value, day) => `2000-01-0${day + 1}T00:00:00,${value},40.0,0.0`,
  );
  t.equal(await csv.text(), `${["time,t2m,lat,lon", ...rows].join("\n")}\n`);
  for (const [format, type, begin] of [
    ["nc", "application/x-netcdf", "CDF\u0001"],
    ["npy", "application/x-npy", "\u0093NUMPY"],
    ["arrow", "application/vnd.apache.arrow.stream", "\u00ff\u00ff\u00ff\u00ff"],
  ] as const) {
    const response = await get(`${SELECT}?var=t2m&f=${format}`);
    t.equal(response.status, 200, format);
    t.equal(response.headers.get("content-type"), type);
    t.equal(response.headers.get("content-disposition"), `attachment; filename="air_t2m.${format}"`);
    const bytes = Buffer.from(await response.arrayBuffer());
    t.equal(bytes.toString("latin1", 0, begin.length), begin);
    t.equal(response.headers.get("content-length"), format === "arrow" ? null : `${bytes.length}`);
  }
});

t.test("the client's favourite format is answered", async (t) => {
  const { get } = await start(t);
  for (const [accept, type] of [
    ["*/*", "application/json"],
    ["text/csv", "text/csv; charset=utf-8"],
    ["text/html, application/x-netcdf;q=0.9, */*;q=0.1", "application/x-netcdf"],
    ["image/png", "application/json"],
  ] as const) {
    const { headers } = await get(`${SELECT}?var=t2m`, { accept });
    t.equal(headers.get("content-type"), type, accept);
    t.match(headers.get("vary"), /Accept/);
  }
});

t.test("HEAD, conditions and ranges are answered as for a file", async (t) => {
  const { url, get } = await start(t);
  const path = `${SELECT}?var=t2m&isel.time=1:3&f=nc`;
  const whole = await get(path);
  const bytes = Buffer.from(await whole.arrayBuffer());
  const etag = whole.headers.get("etag")!;
  const head = await fetch(url + path, { method: "HEAD" });
  t.equal(head.headers.get("content-length"), `${bytes.length}`);
  t.equal(head.headers.get("etag"), etag);
  t.equal((await get(path, { "if-none-match": etag })).status, 304);
  t.equal((await get(path, { "if-none-match": '"other"' })).status, 200);
  for (const begin of [0, 1, 79, bytes.length - 9]) {
    const part = await get(path, { range: `bytes=${begin}-`, "if-range": etag });
    t.equal(part.status, 206);
    t.strictSame(Buffer.from(await part.arrayBuffer()), bytes.subarray(begin), `${begin}`);
  }
  const same = await get(`${SELECT}?f=nc&isel.time=1:3&var=t2m&token=x`);
  t.equal(same.headers.get("etag"), etag, "the order of parameters is none of the answer");
  for (const other of [
    "?var=t2m&isel.time=1:3&f=npy",
    "?var=t2m&isel.time=1:4&f=nc",
    "?var=t2m&isel.time=1:3&f=nc&decode=1",
  ])
    t.not((await get(SELECT + other)).headers.get("etag"), etag, other);
});

t.test("an answer that is none of 304 after all is whole", async (t) => {
  const { url, get } = await start(t);
  const path = `${SELECT}?var=t2m&f=csv`;
  const plain = await get(path, { "accept-encoding": "identity" });
  const [text, etag] = [await plain.text(), plain.headers.get("etag")!];
  const packed = await get(path, { "accept-encoding": "gzip", "if-none-match": etag });
  t.same([packed.status, packed.headers.get("content-encoding")], [200, "gzip"]);
  t.equal(await packed.text(), text);
  const known = packed.headers.get("etag")!;
  t.equal((await get(path, { "accept-encoding": "gzip", "if-none-match": known })).status, 304);
  t.equal((await get(path, { "if-none-match": `x${etag}`, "accept-encoding": "identity" })).status, 200);
  const post = (more: Record<string, string> = {}) =>
    fetch(`${url}${SELECT}?var=t2m&f=csv`, {
      method: "POST",
      headers: { "content-type": "text/csv", ...more },
      body: "time,lat,lon\n2000-01-01,50,0\n",
    });
  const first = await post();
  const again = await post({ "if-none-match": first.headers.get("etag") ?? etag });
  t.same([again.status, await again.text()], [200, await first.text()]);
});

t.test("a selection over the limit is refused before anything is read", async (t) => {
  const { limits } = optionConfig(defaultValues({}));
  const { url, get } = await start(t, { limits: { ...limits, maxSelectionBytes: 150 } });
  const response = await get(`${SELECT}?var=t2m&f=nc`);
  t.equal(response.status, 413);
  t.match(await response.json(), {
    detail: /at most 150 bytes \(--max-selection\), received one of 184 bytes/,
  });
  t.equal((await get(`${SELECT}?var=t2m&isel.time=0&f=nc`)).status, 200);
  t.equal((await get(`${SELECT}?var=t2m&f=csv`)).status, 413, "values are repeated in each row");
  const post = (rows: number) =>
    fetch(`${url}${SELECT}?var=t2m&f=nc`, {
      ...{ method: "POST", headers: { "content-type": "text/csv" } },
      body: `lat,lon\n${"50,0\n".repeat(rows)}`,
    });
  t.equal((await post(4)).status, 200);
  const series = await post(8);
  t.equal(series.status, 413, "a series at each point");
  t.match(await series.json(), {
    detail: /at most 150 bytes \(--max-selection\), received one of 224 bytes/,
  });
});

t.test("refusals have the shape of all others", async (t) => {
  const { get } = await start(t);
  const cases: [string, string, string][] = [
    ["?var=none", "var", "none"],
    ["?lat=51", "lat", "51"],
    ["?level=5", "level", "level"],
    ["?isel.lat=7", "isel.lat", "7"],
    ["?f=grib", "f", "grib"],
    ["?var=spectrum&f=csv", "f", "csv"],
    ["?var=spectrum&f=json", "f", "json"],
    ["?f=npy&var=t2m&var=spectrum", "f", "t2m,spectrum"],
  ];
  for (const [query, parameter, input] of cases) {
    const response = await get(SELECT + query);
    t.equal(response.status, 422, query);
    const { detail } = (await response.json()) as {
      readonly detail: readonly { readonly loc: unknown; readonly input: string; readonly msg: string }[];
    };
    t.strictSame(detail[0]?.loc, ["query", parameter], query);
    t.match(detail[0]?.msg, /[Ee]xpected .+ received/, query);
    t.equal(detail[0]?.input, input, query);
  }
  t.equal((await get("/datasets/none/select")).status, 404);
  t.equal((await get(SELECT)).status, 200, "what no format has is left out unless it is asked for");
});

t.test("points of a body are answered with a row each", async (t) => {
  const { url } = await start(t);
  const post = (query: string, type: string, body: string) =>
    fetch(url + SELECT + query, { method: "POST", headers: { "content-type": type }, body });
  const csv = "station,time,lat,lon\na,2000-01-01,50,0\nb,2000-01-04,nowhere,90\n".replace("nowhere", "40");
  const answer = await post("?var=t2m&f=csv", "text/csv", csv);
  t.equal(answer.status, 200);
  t.equal(
    await answer.text(),
    "t2m,station,time,lat,lon\n2.0,a,2000-01-01T00:00:00,50.0,0.0\n22.5,b,2000-01-04T00:00:00,40.0,90.0\n",
  );
  const near = await post(
    "?var=t2m&isel.time=0&method=nearest&tolerance=2&f=csv",
    "text/csv",
    "lat,lon\n51.5,1\n47,1\n",
  );
  t.equal(
    await near.text(),
    "t2m,time,lat,lon\n2.0,2000-01-01T00:00:00,50.0,0.0\n,2000-01-01T00:00:00,,0.0\n",
  );
  const early = await post(
    "?var=count&method=ffill&f=csv",
    "text/csv",
    "time,id\n1999-01-01,100000000000000001\n2000-01-02,2\n",
  );
  t.equal(
    await early.text(),
    "count,id,time\n,100000000000000001,\n8.0,2,2000-01-02T00:00:00\n",
    "integers without a fill value are missing outside",
  );
  const features = [
    {
      type: "Feature",
      properties: { id: 7, time: "2000-01-02" },
      geometry: { type: "Point", coordinates: [-180, 60] },
    },
  ];
  const geo = await post(
    "?var=t2m",
    "application/geo+json",
    JSON.stringify({ type: "FeatureCollection", features }),
  );
  t.match(await geo.json(), {
    coords: { id: { dims: ["point"], data: [7] }, lon: { dims: ["point"], data: [180] } },
    data_vars: { t2m: { dims: ["point"], data: [7] } },
  });
  t.equal(
    (await post("?var=t2m&f=nc", "text/csv", csv)).headers.get("content-disposition"),
    'attachment; filename="air_t2m.nc"',
  );
  const series = await post(
    "?var=t2m&time=2000-01-02/..&step.time=2&f=csv",
    "text/csv",
    "name,lat,lon\na,50,0\nb,40,90\n",
  );
  t.equal(
    await series.text(),
    [
      "time,point,t2m,name,lat,lon",
      ...["2000-01-02T00:00:00,0,8.0,a,50.0,0.0", "2000-01-02T00:00:00,1,10.5,b,40.0,90.0"],
      ...["2000-01-04T00:00:00,0,20.0,a,50.0,0.0", "2000-01-04T00:00:00,1,22.5,b,40.0,90.0\n"],
    ].join("\n"),
    "dimensions that points do not name stay",
  );
  const refused: [string, string, string, number, RegExp][] = [
    ["?var=t2m", "text/csv", "station\na\n", 422, /a column named after a dimension/],
    ["?var=t2m&isel.time=0", "text/csv", "lat,lon\n51,0\n", 422, /60 to 40/],
    ["?var=t2m&lat=50", "text/csv", "time,lat,lon\n2000-01-01,50,0\n", 422, /either it or the column 'lat'/],
    ["?var=t2m", "text/plain", "a", 415, /text\/csv or application\/geo\+json/],
    ["?var=t2m", "text/csv", "lat,lon\n50\n", 422, /2 fields in row 1/],
  ];
  const long = `lat,lon,text\n50,0,${"x".repeat(6_000_000)}\n${"50,0,y\n".repeat(200)}`;
  refused.push(["?var=t2m&isel.time=0&f=nc", "text/csv", long, 413, /at most 1073741824 .+ one of 1206/]);
  for (const [query, type, body, status, message] of refused) {
    const response = await post(query, type, body);
    t.equal(response.status, status, body.slice(0, 60));
    t.match(JSON.stringify(await response.json()), message, body.slice(0, 60));
  }
});

t.test(
  "a source that fails in the middle of an answer breaks the connection, and never ends it well-formed",
  async (t) => {
    const length = 3_000_000;
    const array = { ...zarray, shape: [2 * length], chunks: [length], compressor: { id: "zlib", level: 1 } };
    const location = await makeDirectory(t);
    await writeFiles(location, {
      ".zgroup": zgroup,
      "v/.zarray": array,
      "v/.zattrs": { _ARRAY_DIMENSIONS: ["x"] },
      "v/0": deflateSync(new Uint8Array(length)),
      "v/1": "no zlib",
    });
    const { get } = await start(t, { datasets: [datasetAt("broken", location)] });
    const path = "/datasets/broken/select?var=v";
    for (const format of ["nc", "npy", "csv", "json", "arrow"]) {
      const response = await get(`${path}&f=${format}`);
      t.equal(response.status, 200, format);
      await t.rejects(response.arrayBuffer(), format);
    }
    t.equal((await get(`${path}&f=csv&isel.x=-1`)).status, 500, "nothing is sent yet");
    t.equal((await get(`${path}&f=csv&isel.x=0`)).status, 200);
  },
);

t.test("the plugin can be switched off, and is described", async (t) => {
  const { json } = await start(t);
  const document = (await json("/openapi.json")) as {
    readonly paths: Record<
      string,
      { readonly get: { readonly parameters: readonly { readonly name?: string }[] } }
    >;
  };
  const names = document.paths["/datasets/{dataset_id}/select"]?.get.parameters.map(({ name }) => name);
  t.match(names, ["var", "{dim}", "isel.{dim}", "step.{dim}", "f", "decode"]);
  const { get } = await start(t, { plugins: [{ name: "zarr" }] });
  t.equal((await get(SELECT)).status, 404);
});
