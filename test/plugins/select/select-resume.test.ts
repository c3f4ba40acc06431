import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { CDF_TYPES, type CdfType, cdfFile } from "../../support/cdf-file.js";
import { startServer } from "../../support/servers/start-server.js";

const RECORDS = 23;
const DIMENSIONS = { time: 0, y: 3, x: 5, letters: 6 };

/** A file with records of numbers of several sizes and of texts, and variables without records. */
function content(shift: number) {
  const names = Object.keys(DIMENSIONS);
  const variable = (name: string, type: CdfType, dims: readonly (keyof typeof DIMENSIONS)[]) => {
    const items = dims.reduce((product, dim) => product * (DIMENSIONS[dim] || RECORDS), 1);
    const bytes = Buffer.alloc(items * CDF_TYPES[type].itemSize);
    for (let i = 0; i < items; i += 1) {
      const at = i * CDF_TYPES[type].itemSize;
      if (type === "double") bytes.writeDoubleBE(i + shift, at);
      else if (type === "short") bytes.writeInt16BE((i * 7 + shift) % 9_000, at);
      // Texts of one to six letters.
      else bytes[at] = type === "char" && i % 6 > (i / 6 + shift) % 6 ? 0 : 97 + ((i + shift) % 26);
    }
    return { name, type, dimensions: dims.map((dim) => names.indexOf(dim)), bytes };
  };
  return cdfFile({
    version: 1,
    dimensions: Object.entries(DIMENSIONS).map(([name, length]) => ({ name, length })),
    recordCount: RECORDS,
    variables: [
      variable("time", "double", ["time"]),
      variable("t2m", "short", ["time", "y", "x"]),
      variable("flag", "byte", ["time", "x"]),
      variable("station", "char", ["time", "letters"]),
      variable("height", "double", ["y", "x"]),
      variable("name", "char", ["y", "letters"]),
    ],
  });
}

async function serve(t: Test, shift = 0, modified = 1e9) {
  const location = join(t.testdir(), "d.nc");
  await writeFile(location, content(shift));
  await utimes(location, modified, modified);
  const dataset = { id: "d", location, immutable: false, encoding: {}, variables: {} };
  const { url } = await startServer(t, { datasets: [dataset] });
  return (query: string, init: RequestInit = {}) => fetch(`${url}/datasets/d/select?${query}`, init);
}

const VARIABLES = "var=t2m&var=flag&var=station&var=height&var=name";
const QUERIES = [
  ...["", "&isel.time=3:20:4", "&isel.time=::-1&isel.x=1:4"].map((more) => `${VARIABLES}${more}&f=nc`),
  ...[`var=t2m&isel.y=0&f=nc`, `var=flag&f=nc`, `var=name&f=nc`],
  ...["t2m", "station", "name", "flag"].map((name) => `var=${name}&f=npy`),
].flatMap((query) => [`${query}&decode=0`, `${query}&decode=1`]);

t.test("a broken download goes on where it ended", async (t) => {
  const ask = await serve(t);
  for (const query of QUERIES) {
    const whole = await ask(query);
    t.equal(whole.status, 200, query);
    const bytes = Buffer.from(await whole.arrayBuffer());
    const etag = whole.headers.get("etag")!;
    const head = await ask(query, { method: "HEAD" });
    t.equal(head.headers.get("content-length"), `${bytes.length}`, "the length is known before");
    t.equal(head.headers.get("etag"), etag);
    const wrong: string[] = [];
    // A prime step meets all places in items, rows and gaps.
    for (let begin = 0; begin < bytes.length; begin += bytes.length > 2_000 ? 199 : 41)
      for (const [headers, end] of [
        [{ range: `bytes=${begin}-` }, bytes.length],
        [{ range: `bytes=${begin}-`, "if-range": etag }, bytes.length],
        [{ range: `bytes=${begin}-${begin + 99}` }, Math.min(bytes.length, begin + 100)],
        [{ range: `bytes=-${bytes.length - begin}` }, bytes.length],
      ] as const) {
        const part = await ask(query, { headers });
        const range = `bytes ${begin}-${end - 1}/${bytes.length}`;
        const isSame = Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(begin, end));
        if (part.status !== 206 || part.headers.get("content-range") !== range || !isSame)
          wrong.push(`${part.status} ${headers.range} ${part.headers.get("content-range")}`);
      }
    t.same(wrong, [], query);
    t.equal((await ask(query, { headers: { range: `bytes=${bytes.length}-` } })).status, 416);
  }
});

t.test("answers that differ have ETags that differ", async (t) => {
  const ask = await serve(t);
  const others = ["&f=json", "&f=csv", "&f=arrow"].map((format) => `var=t2m${format}`);
  const queries = [
    ...QUERIES,
    ...others,
    ...others.map((query) => `${query}&decode=0`),
    "var=t2m&f=nc&time=3",
  ];
  const etags = new Map<string, string>();
  for (const query of queries) {
    const etag = (await ask(query, { method: "HEAD" })).headers.get("etag")!;
    t.match(etag, /^"[\w-]{22}/);
    t.equal(etags.get(etag), undefined, `${query} has one of its own`);
    etags.set(etag, query);
  }
});

t.test("what a broken download goes on with is of the same revision", async (t) => {
  const query = `${VARIABLES}&f=nc`;
  const before = await (await serve(t))(query);
  const begin = (await before.arrayBuffer()).byteLength / 2;
  const ask = await serve(t, 5, 1e9 + 60);
  const headers = { range: `bytes=${begin}-`, "if-range": before.headers.get("etag")! };
  const after = await ask(query, { headers });
  t.equal(after.status, 200, "all of the file that is there now");
  t.not(after.headers.get("etag"), before.headers.get("etag"));
  const bytes = Buffer.from(await after.arrayBuffer());
  t.ok(bytes.equals(Buffer.from(await (await ask(query)).arrayBuffer())));
});
