import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { crc32 } from "node:zlib";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { startServer } from "../../support/servers/start-server.js";

const BASE = "/datasets/d/opendap/d.nc";
const LIMITS = optionConfig(defaultValues({})).limits;

/** Starts a server with a dataset in memory. @param inner Arrays of the group `a`. */
function start(
  t: Test,
  arrays: readonly MemoryArray[],
  inner: readonly MemoryArray[] = [],
  more: Parameters<typeof startServer>[1] = {},
) {
  const groups = [
    { path: "/", arrays },
    { path: "/a", arrays: inner },
  ];
  const dataset = datasetOf("d", createMemorySource({ location: "d", groups }));
  return startServer(t, { datasets: [dataset], ...more });
}

/** Variables of one byte each, by name. */
const bytesOf = (names: readonly string[]): MemoryArray[] =>
  names.map((name, index) => ({ name, data: Uint8Array.of(100 + index), shape: [1], dims: ["one"] }));

t.test("each name of the documents is found, however often it is encoded", async (t) => {
  const names = ["a b", "a,b", "a_v", "b", "b%20c", "f(x)", "x<y>|;=", "y[0]", "\u00e9", "_\u00e9", "50%"];
  const { get } = await start(t, bytesOf(names), bytesOf(["v"]));
  const dds = await (await get(`${BASE}.dds`)).text();
  const found = [...dds.matchAll(/Byte (\S+)\[/g)].map(([, name = ""]) => name);
  t.equal(new Set(found).size, names.length + 1, dds);
  const values = new Set<number>();
  for (const name of found) {
    t.match(name, /^[\w-][\w%-]*$/);
    for (const asked of [name, encodeURIComponent(name), encodeURIComponent(`${name}[0]`), `${name}[0],b`]) {
      const response = await get(`${BASE}.dods?${name === "b" && asked.endsWith(",b") ? name : asked}`);
      t.equal(response.status, 200, asked);
      const body = Buffer.from(await response.arrayBuffer());
      const data = body.subarray(body.indexOf("Data:\n") + 6);
      t.match(body.toString("latin1"), new RegExp(`Byte ${name}\\[one = 1\\]`));
      values.add(data[8]! * 1_000 + found.indexOf(name));
    }
  }
  t.equal(values.size, found.length, "each has its own value");
  for (const name of [...names, "a/v"]) {
    const path = `/${encodeURIComponent(name).replace("%2F", "/")}`;
    for (const asked of [`${path}[0]`, encodeURIComponent(path)])
      t.equal((await get(`${BASE}.dap?dap4.ce=${asked}`)).status, 200, asked);
  }
});

t.test("axes of names that are alike when they are encoded have names of their own", async (t) => {
  const { get } = await start(t, [
    { name: "p", data: Uint8Array.of(1, 2), shape: [2], dims: ["\u00e9"] },
    { name: "q", data: Uint8Array.of(1, 2, 3), shape: [3], dims: ["_\u00e9"] },
  ]);
  const dds = await (await get(`${BASE}.dds`)).text();
  const [, one, other] = /p\[(\S+) = 2\];\s+Byte q\[(\S+) = 3\]/.exec(dds) ?? [];
  t.ok(one !== undefined && one !== other, dds);
});

t.test("integers that DAP2 cannot hold are an error before the answer begins", async (t) => {
  const data = new BigInt64Array(2 ** 20 + 8);
  data[1] = 2n ** 53n + 1n;
  const { get } = await start(t, [
    { name: "v", data, shape: [data.length], dims: ["x"] },
    { name: "small", data: BigInt64Array.of(2n ** 53n + 1n), shape: [1], dims: ["one"] },
  ]);
  const response = await get(`${BASE}.dods?v`);
  t.equal(response.status, 400);
  t.match(await response.text(), /Float64 cannot hold 9007199254740993; DAP4 has it/);
  t.equal((await get(`${BASE}.ascii?v`)).status, 200, "text has all digits");
  t.equal((await get(`${BASE}.dods?v[2:9]`)).status, 200);
  t.match(await (await get(`${BASE}.html`)).text(), /<code>small<\/code> is left out: DAP2 has no integers/);
});

t.test("what DAP4 leaves out is named in its document, and an axis without length is cut", async (t) => {
  const { get } = await start(t, [
    { name: "z", data: new Float32Array(4), dtype: "<c8", shape: [2], dims: ["x"] },
    { name: "none", data: new Int16Array(0), shape: [0, 2], dims: ["empty", "x"] },
  ]);
  const dmr = await (await get(`${BASE}.dmr`)).text();
  t.match(
    dmr,
    /<Attribute name="Left_Out" type="String">\n {4}<Value>z: DAP has no type for complex64<\/Value>\n {2}</,
  );
  t.notMatch(dmr, /none:/, "DAP4 has empty variables");
  t.equal((await get(`${BASE}.dap?dap4.ce=/none[][0]`)).status, 200);
});

t.test("more than a million texts of one length are sent, with the length that they have", async (t) => {
  const count = 2 ** 20 + 5;
  const data = Buffer.alloc(8 * count);
  data.writeUInt32LE(0x61, 8 * (count - 1));
  const { get } = await start(t, [
    { name: "u", data, dtype: "<U2", shape: [count], dims: ["x"], chunks: [2 ** 19] },
    {
      name: "chars",
      data: Buffer.from("ab\0c\0\0"),
      dtype: "|S1",
      shape: [2, 3],
      dims: ["y", "n"],
      chunks: [1, 2],
    },
  ]);
  t.match(await (await get(`${BASE}.das`)).text(), /u \{[^}]*DODS.strlen 8;/);
  const response = await get(`${BASE}.dods?u`, { "accept-encoding": "identity" });
  const body = Buffer.from(await response.arrayBuffer());
  t.equal(response.headers.get("content-length"), `${body.length}`);
  t.equal(body.length - body.indexOf("Data:\n") - 6, 4 + 4 * count + 4);
  t.equal(body.toString("hex", body.length - 8), "0000000161000000");
  const range = { range: `bytes=${body.length - 6}-` };
  t.equal(
    Buffer.from(await (await get(`${BASE}.dods?u`, range)).arrayBuffer()).toString("hex"),
    "000161000000",
  );
  const dap = Buffer.from(await (await get(`${BASE}.dap?dap4.ce=/u[0:1]`)).arrayBuffer());
  t.equal(dap.toString("hex", dap.length - 16), "0".repeat(32));
  const chars = await (await get(`${BASE}.ascii?chars`)).text();
  t.match(chars, /"ab", "c"/, "texts may lie in several chunks");
});

/** Writes a Zarr store of texts of any length. */
async function writeTexts(t: Test, texts: readonly string[]): Promise<string> {
  const location = await mkdtemp(join(tmpdir(), "texts-"));
  t.teardown(() => rm(location, { recursive: true, force: true }));
  const word = (number: number) => Buffer.from(Uint32Array.of(number).buffer);
  const items = texts.flatMap((text) => [word(Buffer.byteLength(text)), Buffer.from(text)]);
  const array = {
    ...{ zarr_format: 2, shape: [texts.length], chunks: [texts.length], dtype: "|O", order: "C" },
    ...{ filters: [{ id: "vlen-utf8" }], compressor: null, fill_value: "" },
  };
  for (const [path, content] of Object.entries({
    ".zgroup": '{"zarr_format": 2}',
    "v/.zarray": JSON.stringify(array),
    "v/.zattrs": '{"_ARRAY_DIMENSIONS": ["x"]}',
    "v/0": Buffer.concat([word(texts.length), ...items]),
  })) {
    await mkdir(dirname(join(location, path)), { recursive: true });
    await writeFile(join(location, path), content);
  }
  return location;
}

t.test("one long text does not count for all", async (t) => {
  const texts = Array.from({ length: 1_000 }, (_, index) => (index === 7 ? "x".repeat(5_000) : `${index}`));
  const location = await writeTexts(t, texts);
  const { get } = await startServer(t, {
    limits: { ...LIMITS, maxSelectionBytes: 100_000 },
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {} }],
  });
  const response = await get(`${BASE}.dods?v`, { "accept-encoding": "identity" });
  t.equal(response.status, 200);
  t.equal(Number(response.headers.get("content-length")), (await response.arrayBuffer()).byteLength);
  t.match(await (await get(`${BASE}.das`)).text(), /DODS.strlen 5000;/);
});

t.test("texts that are longer than was guessed are refused whole", async (t) => {
  const location = await writeTexts(t, ["x".repeat(2_000), "y"]);
  const { get } = await startServer(t, {
    limits: { ...LIMITS, maxSelectionBytes: 1_000 },
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {} }],
  });
  for (const asked of ["dods", "ascii", "dods?v[0]", "dap?dap4.ce=/v"]) {
    const response = await get(`${BASE}.${asked}`);
    t.equal(response.status, 413, asked);
    t.match(
      await response.text(),
      /at most 1000 bytes of values \(--max-selection\), received a request for 20\d\d/,
    );
  }
  t.equal((await get(`${BASE}.dods?v[1]`)).status, 200);
});

t.test("text counts as much memory as its chunks take", async (t) => {
  const data = Float64Array.from({ length: 2 ** 20 }, (_, index) => index / 7);
  const v = { name: "v", data, shape: [data.length], dims: ["x"], chunks: [data.length] };
  const { get } = await start(t, [v]);
  const response = await get(`${BASE}.ascii`, { "accept-encoding": "identity" });
  const metrics = await (await get("/metrics")).text();
  const [, held] = /^zpublish_http_response_bytes_in_flight (\d+)$/m.exec(metrics) ?? [];
  t.ok(Number(held) > data.byteLength, `${held}`);
  await response.body?.cancel();
});

t.test("checksums stand behind each variable, whichever part of it is asked for", async (t) => {
  const data = Int32Array.from({ length: 2_000_000 }, (_, index) => index);
  const { get } = await start(t, [
    { name: "texts", data: Buffer.from("ab\0cde"), dtype: "|S3", shape: [2], dims: ["y"] },
    { name: "v", data, shape: [2_000_000], dims: ["x"], chunks: [300_000] },
  ]);
  const path = `${BASE}.dap?dap4.checksum=true`;
  const bytes = Buffer.from(await (await get(path, { "accept-encoding": "identity" })).arrayBuffer());
  const bodies: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += 4 + (bytes.readUInt32BE(at) & 0xffffff))
    bodies.push(bytes.subarray(at + 4, at + 4 + (bytes.readUInt32BE(at) & 0xffffff)));
  const body = Buffer.concat(bodies.slice(1));
  const ofTexts = Buffer.from("\u0002\0\0\0\0\0\0\0ab\u0003\0\0\0\0\0\0\0cde");
  const checksum = (of: Uint8Array) => Buffer.from(Uint32Array.of(crc32(of)).buffer);
  const expected = [ofTexts, checksum(ofTexts), Buffer.from(data.buffer)];
  t.ok(body.equals(Buffer.concat([...expected, checksum(new Uint8Array(data.buffer))])));
  for (const begin of [bytes.length - 2, bytes.length - 5, 5_000_001]) {
    const part = await get(path, { range: `bytes=${begin}-${begin + 9}` });
    t.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(begin, begin + 10)), `from ${begin} on`);
  }
});

t.test("HEAD has the length that GET has without a coding", async (t) => {
  const { url } = await start(t, [{ name: "v", data: new Float32Array(4_000), shape: [4_000], dims: ["x"] }]);
  const headers = await new Promise<NodeJS.Dict<string | string[]>>((resolve, reject) =>
    request(
      `${url}${BASE}.dods?v`,
      { method: "HEAD", headers: { "accept-encoding": "gzip" } },
      (response) => {
        response.resume();
        resolve(response.headers);
      },
    )
      .on("error", reject)
      .end(),
  );
  t.equal(headers["content-encoding"], undefined);
  t.equal(
    headers["content-length"],
    `${"Dataset {\n    Float32 v[x = 4000];\n} d.nc;\n\nData:\n".length + 16_008}`,
  );
});

t.test("links keep the token of those who cannot send headers", async (t) => {
  const { get } = await start(t, bytesOf(["v"]));
  const bare = await get(`${BASE}?token=a%2Bb`);
  t.ok(bare.headers.get("location")?.endsWith(`${BASE}.html?token=a%2Bb`));
  const page = await (await get(`${BASE}.html?token=a%2Bb`)).text();
  t.match(page, /href="d\.nc\.ascii\?v&amp;token=a%2Bb"/);
  t.match(page, /href="d\.nc\.dds\?&amp;token=a%2Bb"/);
  t.equal((await get(`${BASE}.dds?&token=a%2Bb`)).status, 200);
});
