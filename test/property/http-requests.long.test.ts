import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import fc from "fast-check";
import t from "tap";
import { effort } from "../support/effort.js";
import { openConnection, type RawAnswer, requestText } from "../support/servers/raw-request.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";
import {
  type Asked,
  type AskedTag,
  isRanged,
  keysOf,
  type ModelDataset,
  predict,
  predictSent,
} from "./http-model.js";

/** Another one: `PROPERTY_SEED=… node …`. A failure says its own, with the path to the smallest case. */
const SEED = Number(process.env.PROPERTY_SEED ?? 20_251_120);
const PATH_RUNS = effort(2_500);
const HEADER_RUNS = effort(1_500);

t.setTimeout(600_000);

/** Groups and arrays whose names look like something else, besides plain ones. */
const MODEL: ModelDataset = {
  groups: new Set(["", "g", "g/keys", "g/info", "deep", "deep/er", "a b"]),
  arrays: new Map([
    ["v", { grid: [3, 3], absent: ["2.1"] }],
    ["s", { grid: [], absent: [] }],
    ["line", { grid: [4], absent: ["3"] }],
    ["g/0.0", { grid: [2], absent: [] }],
    ["g/keys/é", { grid: [1, 1], absent: [] }],
    ["deep/er/v", { grid: [11, 1], absent: [] }],
    ["0", { grid: [1], absent: [] }],
  ]),
};

const directory = await makeDirectory(t);
await writeFiles(directory, await storeFiles());
const { url, lines } = await startServer(t, {
  datasets: ["d", "x.y"].map((id) => ({
    id,
    location: join(directory, "store.zarr"),
    immutable: false,
    // The one is passed through, the other is made.
    encoding: id === "d" ? {} : { compressor: { id: "zstd", level: 1 } },
    variables: {},
  })),
});
const datasets = new Map([
  ["d", MODEL],
  ["x.y", MODEL],
]);
let connection = await openConnection(Number(new URL(url).port));
t.teardown(() => connection.socket.destroy());

async function storeFiles(): Promise<Record<string, object | Uint8Array>> {
  const files: Record<string, object | Uint8Array> = {};
  for (const group of MODEL.groups) files[join("store.zarr", group, ".zgroup")] = zgroup;
  let number = 0;
  for (const [path, { grid, absent }] of MODEL.arrays) {
    // Chunks of 2 or 40 per axis; the last one of each reaches beyond the array.
    const chunks = grid.map((_, axis) => (axis === 0 ? 2 : 40));
    const shape = grid.map((count, axis) => count * chunks[axis]! - 1);
    files[`store.zarr/${path}/.zarray`] = { ...zarray, shape, chunks, fill_value: 7 };
    files[`store.zarr/${path}/.zattrs`] = { note: "n".repeat(path === "v" ? 2_000 : 10) };
    const byteLength = chunks.reduce((product, length) => product * length, 1);
    for (const key of keysOf(grid)) {
      if (!absent.includes(key)) files[`store.zarr/${path}/${key}`] = Buffer.alloc(byteLength, ++number);
    }
  }
  return files;
}

async function ask(path: string, method = "GET", headers: Record<string, string> = {}): Promise<RawAnswer> {
  // An answer that says so ends its connection.
  if (connection.closed()) {
    connection.socket.destroy();
    connection = await openConnection(Number(new URL(url).port));
  }
  connection.send(requestText(path, { method, headers }));
  return connection.answer(method === "HEAD");
}

const MACHINE = [directory, process.cwd(), "node_modules", "/.build/", "/dist/", ".js:"];

/** What every answer has to keep to, whatever it is. @throws Error where it does not. */
function check(answer: RawAnswer, method: string): void {
  const { status, headers, body } = answer;
  const demand = (isKept: boolean, what: string) =>
    ok(isKept, `${what}: ${status} ${JSON.stringify(headers)} ${body.subarray(0, 300)}`);
  demand([200, 204, 206, 301, 304, 404, 405, 412, 416, 422].includes(status), "no status of the contract");
  demand(headers["access-control-allow-origin"] === "*", "no CORS");
  demand(headers["cross-origin-resource-policy"] === "cross-origin", "no resource policy");
  demand(headers["x-content-type-options"] === "nosniff", "no nosniff");
  demand(!Number.isNaN(Date.parse(headers.date ?? "")), "no Date");
  const shown = `${JSON.stringify(headers)}${headers["content-encoding"] === undefined ? body : ""}`;
  for (const each of MACHINE) demand(!shown.includes(each), `shows ${each}`);
  if ([200, 206, 304].includes(status)) demand(/^"[\x21\x23-\x7e]+"$/.test(headers.etag ?? ""), "no ETag");
  if (status === 206) demand(headers["content-encoding"] === undefined, "a part that is encoded");
  if (status === 200 || status === 206) demand(headers["accept-ranges"] === "bytes", "no Accept-Ranges");
  if (status === 304 || status === 204) demand(headers["content-type"] === undefined, "a type of nothing");
  if (status === 301)
    demand(/^\/(?![/\\])[\x21-\x7e]*\/(\?|$)/.test(headers.location ?? ""), "no good Location");
  if (status === 405) demand(headers.allow === "GET, HEAD, OPTIONS", "no Allow");
  if (method === "HEAD") demand(body.length === 0, "a body");
  else if (status >= 400) demand("detail" in (strictJson(body) as object), "no detail");
}

/** @throws where it is no JSON in UTF-8 as RFC 8259 says. */
function strictJson(body: Uint8Array): unknown {
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
}

function contentOf({ headers, body }: RawAnswer): Buffer {
  switch (headers["content-encoding"]) {
    case "br":
      return brotliDecompressSync(body);
    case "gzip":
      return gunzipSync(body);
    default:
      return body;
  }
}

const words = (text: string): string[] => text.split(" ");

const DOCUMENTS = words(".zmetadata .zgroup .zattrs .zarray 0 0.0 2.1 2.2 3 10.0 11.0");
const NODES = words("v s line g g/0.0 g/keys g/keys/%C3%A9 deep/er/v 0 a%20b no");

/** Paths of a dataset that are there, or nearly. */
const TAILS: readonly string[] = [
  ...words("/ /keys /dict /info /tree /groups /groups/ /zarr /zarr/ /nothing /Keys"),
  ...["", ...words("g g/keys g/info deep/er v g/0.0")].flatMap((group) =>
    ["", "/", "/keys", "/dict", "/info", "/tree"].map((name) => `/groups/${group}${name}`),
  ),
  ...["", ...NODES].flatMap((node) =>
    ["", "/", ...DOCUMENTS.map((name) => `/${name}`)].map((name) => `/zarr/${node}${name}`),
  ),
];
const KNOWN_PATHS: readonly string[] = [
  ...words("/ /datasets /plugins /versions /openapi.json /docs /datasets/ /datasets// /nothing"),
  ...["d", "x.y", "none"].flatMap((id) => ["", ...TAILS].map((tail) => `/datasets/${id}${tail}`)),
];

const ODD_SEGMENTS: readonly string[] = [
  "",
  ...words(". .. %2e %2E. %2f a%2Fb %5c %00 %0a %7f %c2%85 % %2 %zz %25 %252e"),
  ...words("%c0%ae %ff %ed%a0%80 %e2%82 %f0%9f%8c%8d %C3%A9 ~ * {dataset_id} __proto__"),
  "n".repeat(1_025),
  ...words("00.0 0.00 +0.0 -1.0 1e0.0 0.0.0 0. .0 0..0 0,0 0_0.0 %D9%A0.0 99999999999999999999.0"),
  ...words(".zmetadata .zarray .zattrs .zgroup keys info dict tree zarr groups datasets v d"),
];

/** One change to a path. */
const mutation = fc.oneof(
  fc.record({ kind: fc.constantFrom("encode", "double", "drop", "repeat"), at: fc.nat(60) }),
  ...[
    fc.constantFrom(...ODD_SEGMENTS),
    fc.string({ unit: "grapheme", maxLength: 6 }).map(encodeURIComponent),
  ].map((text) => fc.record({ kind: fc.constantFrom("insert", "replace"), at: fc.nat(9), text })),
);

function mutate(
  path: string,
  change: { readonly kind: string; readonly at: number; readonly text?: string },
): string {
  const { kind, at, text = "" } = change;
  if (kind === "encode" || kind === "double") {
    const i = 1 + (at % Math.max(1, path.length - 1));
    const character = path[i];
    if (character === undefined) return path;
    if (kind === "double") return character === "/" ? `${path.slice(0, i)}/${path.slice(i)}` : path;
    if (character === "/" || character === "%") return path;
    return `${path.slice(0, i)}%${character.charCodeAt(0).toString(16)}${path.slice(i + 1)}`;
  }
  const segments = path.slice(1).split("/");
  const i = at % segments.length;
  if (kind === "drop") segments.splice(i, 1);
  else if (kind === "repeat") segments.splice(i, 0, segments[i]!);
  else segments.splice(i, kind === "replace" ? 1 : 0, text);
  return `/${segments.join("/")}`;
}

const PREDICTED = KNOWN_PATHS.map((path) => ({ path, ...predict(path, datasets) }));
const pathsOf = (status: number, kind: string) =>
  fc.constantFrom(
    ...PREDICTED.filter((each) => each.status === status && each.kind === kind).map(({ path }) => path),
  );
const base = fc.oneof(
  ...["document", "page", "chunk"].map((kind) => pathsOf(200, kind)),
  pathsOf(301, "none"),
  fc.constantFrom(...KNOWN_PATHS),
);
const anyPath = fc
  .tuple(base, fc.array(mutation, { maxLength: 3 }))
  .map(([path, changes]) => changes.reduce(mutate, path));

/** ETags never change here, whatever is asked in between. */
const tags = new Map<string, string>();

t.test("what any path is answered with follows from the contract", async (t) => {
  const seen = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(anyPath, async (path) => {
      const expected = predict(path, datasets);
      const answer = await ask(path);
      check(answer, "GET");
      equal(answer.status, expected.status, `${path}: ${answer.status} ${answer.body.subarray(0, 200)}`);
      const both = `${expected.status} ${expected.kind}`;
      seen.set(both, (seen.get(both) ?? 0) + 1);
      const { headers, body, status } = answer;
      if (status !== 200) return;
      const type = {
        document: "application/json",
        page: "text/html; charset=utf-8",
        chunk: "application/octet-stream",
      };
      if (expected.kind !== "none") equal(headers["content-type"], type[expected.kind], path);
      if (expected.kind === "document") strictJson(body);
      if (expected.kind === "page") return;
      equal(headers.etag, tags.get(path) ?? headers.etag, path);
      tags.set(path, headers.etag as string);
    }),
    { seed: SEED, numRuns: PATH_RUNS },
  );
  const kinds = ["200 document", "200 page", "200 chunk", "301 none", "404 none", "422 none"];
  for (const kind of kinds)
    t.ok((seen.get(kind) ?? 0) > effort(30), `${kind} among them`, { seen: Object.fromEntries(seen) });
});

/** Of paths that are there, and a few that are not. */
const found = PREDICTED.filter(({ status }) => status === 200).map(({ path }) => path);
const servedPath = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...found) },
  { weight: 1, arbitrary: fc.constantFrom(...KNOWN_PATHS) },
);
const condition = fc.constantFrom<AskedTag>("same", "weak", "other", "any", "among others");
const position = fc.oneof(fc.nat(100), fc.constantFrom(0, 2 ** 31, 2 ** 53, Number.MAX_SAFE_INTEGER));
/** A header is left out more often than not, so that others have a say. */
function seldom<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
}
const range = fc.record({ first: position, last: position }, { requiredKeys: [] });
const asked: fc.Arbitrary<Asked> = fc.record({
  method: fc.constantFrom("GET", "GET", "GET", "HEAD"),
  ifMatch: seldom(condition),
  ifNoneMatch: seldom(condition),
  range: fc.option(fc.oneof({ weight: 4, arbitrary: range }, { weight: 1, arbitrary: fc.constant(null) }), {
    nil: undefined,
  }),
  ifRange: seldom(fc.constantFrom("same", "other", "date")),
});
const CODINGS = [
  "br, gzip",
  "gzip;q=0.5, br;q=0",
  "*;q=0",
  "",
  "nonsense;;q",
  ...words("gzip br identity * zstd"),
];
const acceptEncoding = fc.option(fc.constantFrom(...CODINGS), { nil: undefined });
/** In place of a range that none can make anything of. */
const nonsense = fc.constantFrom("", ...words("bytes=0-1,3-4 lines=0-1 bytes=a-b bytes=- 0-1 bytes=1-0x2"));

function conditionText(kind: AskedTag, tag: string): string {
  const texts = {
    same: tag,
    weak: `W/${tag}`,
    other: '"other"',
    any: "*",
    "among others": `"a", W/"b" ,${tag}, "c"`,
  };
  return texts[kind];
}

function headersOf(
  asked: Asked,
  tag: string,
  accepted: string | undefined,
  noRange: string,
): Record<string, string> {
  const { ifMatch, ifNoneMatch, range, ifRange } = asked;
  const ranges = { same: tag, other: '"other"', date: "Fri, 20 Nov 2026 00:00:00 GMT" };
  return {
    ...(ifMatch && { "If-Match": conditionText(ifMatch, tag) }),
    ...(ifNoneMatch && { "If-None-Match": conditionText(ifNoneMatch, tag) }),
    ...(range === null && { Range: noRange }),
    ...(range && { Range: `bytes=${range.first ?? ""}-${range.last ?? ""}` }),
    ...(ifRange && { "If-Range": ranges[ifRange] }),
    ...(accepted !== undefined && { "Accept-Encoding": accepted }),
  };
}

/** Headers that differ from one answer to the next. */
const VOLATILE = ["date", "server-timing", "x-cache", "x-request-id"];

function lasting(headers: Readonly<Record<string, string>>): string {
  return JSON.stringify(
    Object.entries(headers)
      .filter(([name]) => !VOLATILE.includes(name))
      .sort(),
  );
}

t.test("what conditions and ranges make of an answer follows from RFC 9110", async (t) => {
  const seen = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(servedPath, asked, acceptEncoding, nonsense, async (path, asked, accepted, noRange) => {
      const { status, kind } = predict(path, datasets);
      const coded = accepted === undefined || isRanged(asked) ? {} : { "Accept-Encoding": accepted };
      const whole = await ask(path, "GET", coded);
      const plain = await ask(path);
      check(whole, "GET");
      const tag = whole.headers.etag ?? '"none"';
      const headers = headersOf(asked, tag, accepted, noRange);
      const answer = await ask(path, asked.method, headers);
      check(answer, asked.method);
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      const what = `${asked.method} ${path} ${JSON.stringify(headers)}`;
      ok(contentOf(whole).equals(plain.body), `${what}: other content when encoded`);
      if (kind === "chunk") equal(whole.headers["content-encoding"], undefined, what);

      const expected = status === 200 ? predictSent(asked, whole.body.length) : { status };
      equal(answer.status, expected.status, `${what}: ${answer.status}`);
      if (answer.status === 206 && "first" in expected) {
        const { first, last } = expected;
        equal(answer.headers["content-range"], `bytes ${first}-${last}/${plain.body.length}`, what);
        ok(answer.body.equals(plain.body.subarray(first, last + 1)), `${what}: other bytes`);
      } else if (answer.status === 416) {
        equal(answer.headers["content-range"], `bytes */${plain.body.length}`, what);
      } else if (answer.status === 200) {
        ok(asked.method !== "GET" || answer.body.equals(whole.body), `${what}: other bytes`);
        equal(lasting(answer.headers), lasting(whole.headers));
      }
      if ([206, 304].includes(answer.status)) equal(answer.headers.etag, tag, what);
    }),
    { seed: SEED, numRuns: HEADER_RUNS },
  );
  for (const status of [200, 206, 304, 404, 412, 416])
    t.ok((seen.get(status) ?? 0) > effort(10), `${status} among them`, { seen: Object.fromEntries(seen) });
});

t.test(
  "HEAD has GET's headers, OPTIONS is a preflight and every other method 405, on any path",
  async (t) => {
    const methods = fc.constantFrom(...words("HEAD OPTIONS POST PUT DELETE PATCH TRACE PROPFIND QUERY"));
    await fc.assert(
      fc.asyncProperty(anyPath, methods, async (path, method) => {
        const answer = await ask(path, method);
        check(answer, method);
        const wanted = method === "OPTIONS" ? 204 : method === "HEAD" ? predict(path, datasets).status : 405;
        equal(answer.status, wanted, `${method} ${path}: ${answer.status}`);
        if (method === "HEAD") equal(lasting(answer.headers), lasting((await ask(path)).headers));
      }),
      { seed: SEED, numRuns: effort(800) },
    );
    t.notOk(
      lines.find(({ level }) => level >= 50),
      "and nothing of all this was a failure",
    );
  },
);
