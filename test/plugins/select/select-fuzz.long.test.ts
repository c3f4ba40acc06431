import { request } from "node:http";
import fc from "fast-check";
import t from "tap";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { effort } from "../../support/effort.js";
import { startServer } from "../../support/servers/start-server.js";

t.setTimeout(600_000);

const FORMATS = ["nc", "npy", "csv", "json", "arrow"];

function axis(name: string, values: readonly number[], attrs: Record<string, string> = {}): MemoryArray {
  return { name, data: Float64Array.from(values), shape: [values.length], dims: [name], attrs };
}

/** Two groups, one of them with a curvilinear grid: packed, text, 360 days a year, descending, 0 to 360 degrees. */
function world() {
  const numbers = (count: number) => Int16Array.from({ length: count }, (_, index) => index - 5);
  const arrays: MemoryArray[] = [
    axis("time", [0, 30, 59, 60], { units: "days since 2000-01-01", calendar: "360_day" }),
    axis("lat", [60, 50, 40], { units: "degrees_north" }),
    axis("lon", [0, 90, 180, 270], { units: "degrees_east" }),
    {
      ...{ name: "t2m", shape: [4, 3, 4], dims: ["time", "lat", "lon"], chunks: [2, 3, 2], fillValue: 7 },
      ...{ data: numbers(48), attrs: { scale_factor: 0.5 } },
    },
    { name: "name", data: Buffer.from("ab\0cde"), dtype: "|S2", shape: [3], dims: ["lat"] },
    { name: "spectrum", data: new Float32Array(6), dtype: "<c8", shape: [3], dims: ["lat"] },
    { name: "crs", data: numbers(1), shape: [] },
    { name: "none", data: numbers(0), shape: [0, 3], dims: ["empty", "lat"] },
  ];
  const plane = (name: string, units: string, data: Float64Array): MemoryArray => ({
    ...{ name, data, shape: [3, 4], dims: ["y", "x"], attrs: { units } },
  });
  const of = (value: (y: number, x: number) => number) =>
    Float64Array.from({ length: 12 }, (_, index) => value(Math.floor(index / 4), index % 4));
  const curved: MemoryArray[] = [
    plane(
      "nav_lat",
      "degrees_north",
      of((y, x) => 60 + y + x / 9),
    ),
    plane(
      "nav_lon",
      "degrees_east",
      of((y, x) => (358 + x + y / 9) % 360),
    ),
    {
      ...{ name: "ice", data: numbers(12), shape: [3, 4], dims: ["y", "x"] },
      attrs: { coordinates: "nav_lat nav_lon" },
    },
  ];
  const groups = [
    { path: "/", arrays },
    { path: "/sea", arrays: curved },
  ];
  return datasetOf("d", createMemorySource({ location: "d", groups }));
}

const label = fc.oneof(
  fc.constantFrom(
    ..."0 50 60 90 -90 450 2000-02-30 2000 2000-01-01T00:00:00Z 1e400 nan inf -0 007 t2m".split(" "),
  ),
  fc.constantFrom(
    "",
    " ",
    "\0",
    "\u0007\r\n",
    "..",
    "99999999999999999999999999",
    "é",
    "😀".repeat(30),
    "%zz",
  ),
  fc.double().map(String),
  fc.string({ unit: "binary", maxLength: 9 }),
);
const integer = fc.oneof(fc.integer({ min: -6, max: 6 }), fc.integer(), fc.maxSafeInteger()).map(String);
const method = fc.constantFrom("nearest", "ffill", "bfill", "exact", "pad", "");
const value = fc.oneof(
  label,
  fc.tuple(label, label).map((ends) => ends.join("/")),
  fc.tuple(method, label).map((parts) => parts.join("::")),
  integer,
  fc
    .array(fc.option(integer), { minLength: 2, maxLength: 4 })
    .map((parts) => parts.map((each) => each ?? "").join(":")),
  fc.constantFrom("x".repeat(6_000), "/".repeat(3_000), ":".repeat(3_000), "1".repeat(5_000)),
);
const dim = fc.constantFrom(..."time lat lon y x nav_lat nav_lon latitude empty point".split(" "));
const variable = fc.constantFrom(
  ..."t2m name spectrum crs none sea sea/ice ice / sea/nav_lat time lat".split(" "),
);
const pair = fc.oneof(
  fc.tuple(fc.constant("var"), fc.oneof({ arbitrary: variable, weight: 4 }, label)),
  fc.tuple(fc.constant("f"), fc.oneof({ arbitrary: fc.constantFrom(...FORMATS), weight: 4 }, label)),
  fc.tuple(dim, value),
  fc.tuple(
    dim.map((name) => `isel.${name}`),
    fc.oneof(integer, value),
  ),
  fc.tuple(
    dim.map((name) => `step.${name}`),
    fc.oneof(integer, value),
  ),
  fc.tuple(
    fc.constantFrom("decode", "method", "tolerance", "token"),
    fc.oneof(fc.constantFrom("0", "1"), method, value),
  ),
  fc.tuple(fc.string({ unit: "binary", maxLength: 6 }), value),
);
const isWellFormed = (text: string) => !/\p{Surrogate}/u.test(text);
const query = fc.array(pair, { maxLength: 5 }).map((pairs) =>
  pairs
    .filter(([name, text]) => isWellFormed(name + text))
    .map(
      ([name, text], index) =>
        `${encodeURIComponent(name)}=${index % 3 === 2 ? text.replace(/[^!-~]|[#]/g, "%") : encodeURIComponent(text)}`,
    )
    .join("&"),
);
const cell = fc.oneof(label, integer, fc.constantFrom('"', '""', '"a,b"', ",", "\n", '"\r\n"'));
const column = fc.oneof(dim, dim, fc.constantFrom("station", "t2m", "a/b", "__proto__", "\u0007", ""), label);
const csv = fc
  .tuple(fc.array(column, { maxLength: 5 }), fc.array(fc.array(cell, { maxLength: 5 }), { maxLength: 4 }))
  .map(([names, rows]) => [names, ...rows].map((row) => row.join()).join("\n"));
const position = fc.oneof(
  fc.constantFrom([0, 60], [90, 50, 3]),
  fc.array(fc.oneof(fc.double(), fc.jsonValue())),
);
const geometry = fc.oneof(
  fc.record({
    type: fc.constantFrom("Point", "MultiPoint", "Polygon", ""),
    coordinates: fc.oneof(position, fc.array(position)),
  }),
  fc.jsonValue(),
);
const properties = fc.oneof(fc.dictionary(column, fc.jsonValue()), fc.jsonValue());
const feature = fc.oneof(fc.record({ type: fc.constant("Feature"), geometry, properties }), geometry);
const geoJson = fc.oneof(
  feature,
  fc.record({ type: fc.constant("FeatureCollection"), features: fc.array(feature) }),
);
const posted = fc.oneof(
  csv.map((text) => ({ type: "text/csv", body: Buffer.from(text) })),
  geoJson.map((object) => ({ type: "application/geo+json", body: Buffer.from(JSON.stringify(object)) })),
  fc
    .tuple(
      fc.constantFrom("text/csv; charset=x", "application/json", "text/plain", "", "\t"),
      fc.uint8Array({ maxLength: 60 }),
    )
    .map(([type, bytes]) => ({ type, body: Buffer.from(bytes) })),
);

interface Posted {
  readonly type: string;
  readonly body: Buffer;
}

/** Sends a request as it is, and waits for all of the answer. */
function send(url: string, path: string, post?: Posted) {
  const { hostname: host, port } = new URL(url);
  return new Promise<{ readonly status: number; readonly body: string }>((resolve, reject) => {
    const headers =
      post === undefined ? {} : { "content-type": post.type, "content-length": post.body.length };
    const options = {
      host,
      port,
      path,
      headers,
      method: post === undefined ? "GET" : "POST",
      timeout: 20_000,
    };
    const sent = request(options, async (answer) => {
      try {
        const pieces: Buffer[] = [];
        for await (const piece of answer) pieces.push(piece as Buffer);
        resolve({ status: answer.statusCode ?? 0, body: Buffer.concat(pieces).toString("latin1") });
      } catch (error) {
        reject(error);
      }
    });
    sent.on("timeout", () => sent.destroy(new Error("no answer in 20 s")));
    sent.on("error", reject).end(post?.body);
  });
}

/** Returns what is wrong with an answer that is neither whole nor a refusal in the service's shape. */
function problemOf({ status, body }: Awaited<ReturnType<typeof send>>): string | undefined {
  if ([200, 414, 431].includes(status)) return undefined;
  if (![404, 413, 415, 422].includes(status)) return `${status} ${body}`;
  const { detail } = JSON.parse(body) as { readonly detail: string | readonly { readonly msg: string }[] };
  const text = typeof detail === "string" ? detail : detail.map(({ msg }) => msg).join();
  return /[Ee]xpected .+ received /s.test(text) ? undefined : `${status} ${body}`;
}

const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));

for (const layer of ["", "node"])
  t.test(
    `no query and no body stops the server, hangs or is answered 500 (${layer} seed ${SEED})`,
    async (t) => {
      const { ZPUBLISH_HTTP = "" } = process.env;
      process.env.ZPUBLISH_HTTP = layer;
      const { url, get, lines } = await startServer(t, { datasets: [world()] });
      process.env.ZPUBLISH_HTTP = ZPUBLISH_HTTP;
      const problems: string[] = [];
      const statuses = new Map<number, number>();
      const check = async (text: string, post?: Posted) => {
        try {
          const answer = await send(url, `/datasets/d/select?${text}`, post);
          statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
          const problem = problemOf(answer);
          if (problem !== undefined) throw new Error(problem);
        } catch (error) {
          problems.push(`${text} ${post?.body.toString() ?? ""}: ${error}`.slice(0, 1_000));
        }
      };
      for (const text of fc.sample(query, { numRuns: effort(2_000), seed: SEED })) await check(text);
      const plain = fc.constantFrom(
        ..." var=t2m isel.time=0 isel.time=0&var=sea isel.y=0&isel.x=0&var=sea".split(" "),
      );
      const asked = fc.oneof(
        plain,
        fc.tuple(plain, query).map((parts) => parts.join("&")),
      );
      const way = fc.constantFrom("", "&method=nearest", "&f=nc", "&f=csv&method=nearest");
      const posts = fc.tuple(asked, way, posted);
      for (const [text, more, body] of fc.sample(posts, { numRuns: effort(500), seed: SEED }))
        await check(text + more, body);
      t.comment([...statuses]);
      t.same(problems, []);
      const errors = lines.filter(({ level }) => level >= 50);
      t.same(errors, []);
      t.equal((await get("/healthz")).status, 200);
    },
  );
