import t, { type Test } from "tap";
import { createMemorySource } from "../../../src/open/memory-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { openConnection } from "../../support/servers/raw-request.js";
import { startServer } from "../../support/servers/start-server.js";

/** Temperatures of 2 latitudes and 3 longitudes. */
async function start(t: Test) {
  const axis = (name: string, values: readonly number[], units: string) => ({
    ...{ name, data: Float64Array.from(values), shape: [values.length], dims: [name], attrs: { units } },
  });
  const arrays = [
    axis("lat", [60, 50], "degrees_north"),
    axis("lon", [0, 90, 180], "degrees_east"),
    { name: "t2m", data: Float32Array.of(0, 1, 2, 3, 4, 5), shape: [2, 3], dims: ["lat", "lon"] },
  ];
  const source = createMemorySource({ location: "air", groups: [{ path: "/", attrs: {}, arrays }] });
  return startServer(t, { datasets: [datasetOf("air", source)] });
}

const SELECT = "/datasets/air/select?var=t2m&f=csv";
const GEO = "application/geo+json";
const feature = (geometry: unknown) => JSON.stringify({ type: "Feature", properties: {}, geometry });
const polygon = {
  type: "Polygon",
  coordinates: [
    [
      [0, 60],
      [90, 60],
      [90, 50],
      [0, 60],
    ],
  ],
};

/** Bodies, the status of their answers, and what their `detail` says. */
const BODIES: readonly (readonly [
  name: string,
  type: string | undefined,
  body: string,
  status: number,
  detail: RegExp,
])[] = [
  ["points", "text/csv", "lat,lon\n50,90\n", 200, /^t2m,lat,lon\n4.0,50.0,90.0\n$/],
  [
    "content types have parameters",
    "Text/CSV; charset=utf-8",
    "lat,lon\n50,90\n",
    200,
    /^t2m,lat,lon\n4.0,50.0,90.0\n$/,
  ],
  ["a point", GEO, feature({ type: "Point", coordinates: [90, 50] }), 200, /^t2m,lat,lon\n4.0,50.0,90.0\n$/],
  ["no body", "text/csv", "", 422, /at least one point, received 'none'/],
  ["no body and no type", undefined, "", 415, /received ''/],
  ["only a head", "text/csv", "lat,lon\n", 422, /at least one point/],
  ["only empty lines", "text/csv", "\n\n", 422, /at least one point/],
  [
    "no known column",
    "text/csv",
    "place,height\na,1\n",
    422,
    /a column named after a dimension or coordinate, received 'place, height'/,
  ],
  [
    "text in place of a number",
    "text/csv",
    "lat,lon\nnorth,90\n",
    422,
    /"body","lat".+a number \(60 to 50\), received 'north'/,
  ],
  ["an empty field", "text/csv", "lat,lon\n,90\n", 422, /a number \(60 to 50\), received ''/],
  [
    "a column twice",
    "text/csv",
    "lat,lat,lon\n50,60,90\n",
    422,
    /columns with different names, received 'lat'/,
  ],
  [
    "too many columns",
    "text/csv",
    `lat,lon,${Array.from({ length: 2_000 }, (_, at) => `c${at}`).join()}\n`,
    413,
    /at most 1000 columns, received at least 1001/,
  ],
  ["an open quote", "text/csv", 'lat,lon\n"50,90\n', 422, /a field of CSV in line 2/],
  ["bytes that are no UTF-8", "text/csv", "\xff", 422, /Expected UTF-8/],
  ["a polygon", GEO, feature(polygon), 422, /Point or MultiPoint, received 'Polygon'/],
  ["no geometry", GEO, feature(null), 422, /Point or MultiPoint/],
  [
    "a point without coordinates",
    GEO,
    feature({ type: "Point", coordinates: [] }),
    422,
    /\[longitude, latitude\], received '\[\]'/,
  ],
  ["no GeoJSON", GEO, '{"lat": 50}', 422, /Point or MultiPoint/],
  ["no JSON", GEO, "{", 422, /Expected JSON, received '\{'/],
  [
    "another type",
    "application/xml",
    "<lat>50</lat>",
    415,
    /text\/csv or application\/geo\+json, received 'application\/xml'/,
  ],
  [
    "a form",
    "application/x-www-form-urlencoded",
    "lat=50",
    415,
    /received 'application\/x-www-form-urlencoded'/,
  ],
  [
    "a body over the limit",
    "text/csv",
    "lat,lon\n".padEnd(16 * 2 ** 20 + 1, "50,90\n"),
    413,
    /at most 16777216 bytes, received 16777217/,
  ],
];

t.test("each body has its status, and its answer says what was expected", async (t) => {
  const { url } = await start(t);
  for (const [name, type, text, status, detail] of BODIES) {
    const body = Buffer.from(text, name.startsWith("bytes") ? "latin1" : "utf8");
    const headers = type === undefined ? {} : { "content-type": type };
    const response = await fetch(url + SELECT, { method: "POST", headers, body });
    const answer = await response.text();
    t.equal(response.status, status, name);
    t.match(answer, detail, name);
  }
});

t.test("a client that waits before it sends its points is asked for them", async (t) => {
  const { url } = await start(t);
  const { socket, send, answer } = await openConnection(Number(new URL(url).port));
  const points = "lat,lon\n50,90\n";
  const head = [
    "Host: test",
    "Content-Type: text/csv",
    `Content-Length: ${points.length}`,
    "Expect: 100-continue",
  ];
  send(`POST ${SELECT.replace("csv", "nc")} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`);
  t.equal((await answer(true)).status, 100);
  send(points);
  const whole = await answer();
  t.strictSame([whole.status, whole.body.toString("latin1", 0, 3)], [200, "CDF"]);
  socket.destroy();
});

t.test("the description lists the statuses that are answered", async (t) => {
  const { json } = await start(t);
  type Operation = { readonly responses: Readonly<Record<string, unknown>> };
  const { paths } = (await json("/openapi.json")) as {
    readonly paths: Readonly<Record<string, { readonly get: Operation; readonly post: Operation }>>;
  };
  const { get, post } = paths["/datasets/{dataset_id}/select"]!;
  const shared = [200, 404, 405, 413, 422, 500, 503];
  const statuses = ({ responses }: Operation) => Object.keys(responses).map(Number);
  t.strictSame(statuses(get), [...shared, 206, 304, 412, 416].toSorted());
  t.strictSame(statuses(post), [...shared, 415].toSorted());
});
