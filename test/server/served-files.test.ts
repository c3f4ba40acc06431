import { rename, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync, inflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { createFileSource } from "../../src/formats/file-source.js";
import { createFileStore } from "../../src/stores/file-store.js";
import { effort } from "../support/effort.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const ZLIB = { id: "zlib", level: 6 };
/** Chunks of 4 bytes: some deflated, one stored as it is, one absent. */
const ITEMS = 20;

/** A file of which every item is `value`, with chunks at other places for other values. */
function fileOf(value: number): Buffer {
  const raw = Buffer.alloc(4, value);
  const chunks = [deflateSync(raw), raw, deflateSync(raw), undefined, deflateSync(raw)];
  const offsets = new Float64Array(chunks.length).fill(-1);
  const byteLengths = new Uint32Array(chunks.length);
  const data = Buffer.alloc(400, 0xee);
  let at = value;
  for (const [index, chunk] of chunks.entries()) {
    if (chunk === undefined) continue;
    offsets[index] = DATA_OFFSET + at;
    byteLengths[index] = chunk.length;
    data.set(chunk, at);
    at += chunk.length + 3;
  }
  const listed = plainArray({
    name: "v",
    shape: [ITEMS],
    chunkShape: [4],
    codecs: [ZLIB],
    compressorCount: 1,
    variants: [[]],
    chunks: { kind: "listed", offsets, byteLengths, variants: Uint8Array.of(0, 1, 0, 0, 0) },
  });
  const inline = plainArray({
    name: "now",
    shape: [1],
    chunkShape: [1],
    chunks: { kind: "inline", bytes: Uint8Array.of(value) },
  });
  const codecs = [{ id: "pad", byteLength: 1 }];
  const padded = plainArray({
    ...{ name: "padded", shape: [4], chunkShape: [4], codecs, servedFilters: [] },
    chunks: { kind: "strided", start: DATA_OFFSET, strides: [0], byteLength: 1 },
  });
  const recipe = [
    [
      [0, 2],
      [0, 2],
    ],
  ];
  const made = plainArray({ name: "made", shape: [4], chunkShape: [4], chunks: { kind: "made", recipe } });
  return plainFile({ arrays: [inline, listed, made, padded], data });
}

async function serve(t: Test, encoding: object = {}) {
  const directory = await makeDirectory(t);
  const path = join(directory, "a.plain");
  await writeFile(path, fileOf(7));
  await makeOld(path);
  const cache = await makeDirectory(t);
  const source = createFileSource({
    ...{ location: "a.plain", store: createFileStore(directory), key: "a.plain" },
    ...{ formats: [plainFormat], freshness: "always" },
  });
  const server = await startServer(t, {
    cache: { directory: cache, maxBytes: 2 ** 22 },
    refreshSeconds: 3_600,
    datasets: [{ id: "d", location: "a.plain", immutable: false, encoding, variables: {}, source }],
  });
  const get = (key: string, headers: Record<string, string> = {}) =>
    server.get(`/datasets/d/zarr/${key}`, { "Accept-Encoding": "identity", ...headers });
  return { ...server, path, get };
}

const bytesOf = async (answer: Response) => new Uint8Array(await answer.arrayBuffer());

t.test("chunks of a file are passed through, and made if their codecs differ", async (t) => {
  const { get } = await serve(t);
  t.match(await (await get("v/.zarray")).json(), { compressor: ZLIB, filters: null, chunks: [4] });
  const raw = Buffer.alloc(4, 7);
  for (const [key, origin] of [
    ["0", "PASS"],
    ["1", "MISS"],
    ["2", "PASS"],
    ["4", "PASS"],
  ] as const) {
    const answer = await get(`v/${key}`);
    t.equal(answer.headers.get("x-cache"), origin, key);
    const bytes = Buffer.from(await answer.arrayBuffer());
    t.same(inflateSync(bytes), raw);
    if (origin === "PASS") t.same(bytes, deflateSync(raw));
    const again = await get(`v/${key}`);
    t.same(Buffer.from(await again.arrayBuffer()), bytes);
    t.equal(again.headers.get("etag"), answer.headers.get("etag"));
    const part = await get(`v/${key}`, { Range: "bytes=2-4" });
    t.equal(part.status, 206);
    t.same(Buffer.from(await part.arrayBuffer()), bytes.subarray(2, 5));
    t.equal((await get(`v/${key}`, { "If-None-Match": answer.headers.get("etag") ?? "" })).status, 304);
  }
  for (let round = 0; round < 3; round++) t.equal((await get("v/3")).status, 404, "absent");
  t.same([...(await bytesOf(await get("now/0")))], [7]);
});

t.test("Zarr v3 has the same chunks, and names no codec that clients do not know", async (t) => {
  const { get } = await serve(t);
  const inV3 = (key: string) => get(`../zarr3/${key}`);
  for (const [name, codecs] of [
    ["v", ["bytes", "numcodecs.zlib"]],
    ["padded", ["bytes"]],
    ["made", ["bytes"]],
  ] as const) {
    const document = (await (await inV3(`${name}/zarr.json`)).json()) as { codecs: { name: string }[] };
    t.same(
      document.codecs.map((codec) => codec.name),
      codecs,
    );
    for (const index of name === "v" ? [0, 1, 4] : [0])
      t.same(await bytesOf(await inV3(`${name}/c/${index}`)), await bytesOf(await get(`${name}/${index}`)));
  }
  t.same([...(await bytesOf(await get("padded/0")))], [0xee, 0, 0, 0]);
  t.same([...(await bytesOf(await get("made/0")))], [0xee, 0xee, 0xee, 0xee]);
  t.equal((await get("made/0")).headers.get("x-cache"), "HIT");
});

t.test("a request that meets a replaced file is answered from the new one", async (t) => {
  const { get, path } = await serve(t);
  const before = (await get("v/0")).headers.get("etag");
  await writeFile(path, fileOf(8));
  const answer = await get("v/0");
  t.equal(answer.status, 200);
  t.not(answer.headers.get("etag"), before);
  t.same(inflateSync(Buffer.from(await answer.arrayBuffer())), Buffer.alloc(4, 8));
  t.same([...(await bytesOf(await get("now/0")))], [8]);
  await writeFile(path, fileOf(9));
  t.equal((await get("v/3")).status, 404, "an absent chunk is looked for in the new one");
  t.same([...(await bytesOf(await get("now/0")))], [9]);
});

t.test("a file that is cut short is neither served nor absent, until it is whole again", async (t) => {
  const { get, path, server } = await serve(t);
  t.equal((await get("v/0")).status, 200);
  await truncate(path, 100);
  const statuses = new Set<number>();
  for (let round = 0; round < 4; round++)
    for (const key of ["v/0", "v/3", "now/0"]) statuses.add((await get(key)).status);
  for (const status of statuses) t.ok(status >= 500, `${status}`);
  await writeFile(path, fileOf(5));
  await server.refresh();
  t.same([...(await bytesOf(await get("now/0")))], [5]);
});

for (const [title, encoding] of [
  ["passed through", {}],
  ["put together again", { chunks: [10], compressor: null }],
] as const)
  t.test(`${title}: bytes of one version are never sent under the ETag of another`, async (t) => {
    const { get, path } = await serve(t, encoding);
    const values = new Map<string, number>();
    const decode = (bytes: Buffer) => ("chunks" in encoding ? bytes : inflateSync(bytes));
    let isOver = false;
    let answered = 0;
    async function readOften(key: string): Promise<void> {
      while (!isOver) {
        const answer = await get(`v/${key}`);
        const bytes = Buffer.from(await answer.arrayBuffer());
        if (answer.status === 503 || answer.status === 500) continue;
        if (answer.status !== 200) throw new Error(`expected 200, received ${answer.status}`);
        answered++;
        const [value = 0, ...others] = decode(bytes).filter((item) => item !== 0);
        const etag = answer.headers.get("etag") ?? "";
        if (others.some((other) => other !== value)) throw new Error("expected one version, received two");
        if ((values.get(etag) ?? value) !== value) throw new Error("expected one version under an ETag");
        values.set(etag, value);
      }
    }
    const readers = ["0", "1", "0", "1"].map(readOften);
    for (let round = 0; round < effort(150); round++) {
      const content = fileOf(10 + (round % 100));
      if (round % 3 === 0) await writeFile(path, content);
      else {
        await writeFile(`${path}.new`, content);
        await rename(`${path}.new`, path);
      }
      const seen = answered;
      for (let turn = 0; turn < 200 && answered === seen; turn++)
        await new Promise((resolve) => setTimeout(resolve, 1));
    }
    isOver = true;
    await Promise.all(readers);
    t.ok(values.size > 2, `${values.size} versions`);
  });
