import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { registry } from "zarrita";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { INDEX_AXIS, MISSING, UNREAD } from "../../src/explore/protocol.js";
import { DECODED_BYTES, registerCodecs } from "../../src/explore/worker/codecs/codec-registry.js";
import { xxh64 } from "../../src/explore/worker/codecs/decoders.js";
import { createMemorySource, type MemoryArray } from "../../src/open/memory-source.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { bloscFrame, INNER, snappyStream } from "../support/codec/blosc-frame.js";
import { PLAIN, streamFrame, zstdFrame, zstdPatterns, zstdRuns } from "../support/codec/hostile-frame.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/steps.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { effort } from "../support/effort.js";
import {
  type Answer,
  createExploreClient,
  openExplore,
  openRequest,
  openStore,
} from "../support/explore/explore-client.js";
import { startStore } from "../support/explore/store-server.js";

t.setTimeout(120_000);

const TIME = { units: "hours since 2013-01-01", calendar: "noleap" };

function datasetWith(...arrays: readonly MemoryArray[]) {
  return datasetOf(
    "d",
    createMemorySource({ location: "d", groups: [{ path: "/", attrs: { title: "x" }, arrays }] }),
  );
}

/** An array of one dimension, which has its name. */
function coordinate(
  name: string,
  data: MemoryArray["data"] & { readonly length: number },
  more: Partial<MemoryArray>,
): MemoryArray {
  return { name, data, shape: [data.length], dims: [name], ...more };
}

/** An array of one value. */
function scalar(name: string, dtype: string, bytes: ArrayBufferView, attrs = {}): MemoryArray {
  return { name, dtype, data: bytes, shape: [], attrs };
}

t.test("axes: dates of any calendar, datetimes, texts, bounds, packed numbers", async (t) => {
  const dims = ["time", "day", "name", "lat"];
  const lengths = [3, 2, 2, 2];
  const { client } = await openExplore(
    t,
    {
      datasets: [
        datasetWith(
          { name: "v", data: new Float32Array(24), shape: lengths, dims },
          coordinate("time", Float64Array.of(0, 1416.5, Number.NaN), { attrs: TIME }),
          coordinate("day", BigInt64Array.of(1_357_000_000_123_456_789n, -(2n ** 63n)), { dtype: "<M8[ns]" }),
          coordinate("name", Uint32Array.of(97, 0, 0x1f30d, 98), { dtype: "<U2", shape: [2] }),
          coordinate("lat", Int16Array.of(0, 503), {
            fillValue: 0,
            attrs: { scale_factor: 0.1, units: "degrees_north", bounds: "lat_bnds" },
          }),
          { name: "lat_bnds", data: Float32Array.of(-1, 20, 20, 60), shape: [2, 2], dims: ["lat", "nv"] },
        ),
      ],
    },
    "d",
  );
  const axis = async (index: number) =>
    (await client.ask({ kind: "axis", variable: "v", axis: index }, "axis")).values;
  const time = await axis(0);
  t.same(time.texts, ["2013-01-01T00:00:00", "2013-03-01T00:30:00", "NaT"]);
  t.match(time, { calendar: "noleap", units: "hours since 2013-01-01", numbers: [0, 1416.5, Number.NaN] });
  const day = await axis(1);
  t.same(day.texts, ["2013-01-01T00:26:40.123456789", "NaT"]);
  t.same(day.numbers && [...day.numbers], [Number(1_357_000_000_123_456_789n), Number.NaN]);
  t.same(await axis(2), { ...INDEX_AXIS, texts: ["a", "🌍b"] });
  const lat = await axis(3);
  t.same([...lat.numbers!], [0, Math.fround(50.3)], "the fill value is a number; floats are xarray's");
  t.same([...lat.bounds!], [-1, 20, 20, 60]);
  t.equal(lat.units, "degrees_north");
});

t.test("values have the digits of their type, and flags their meanings", async (t) => {
  const flags = { flag_values: [1, 2], flag_meanings: "land sea" };
  const masks = { flag_masks: [1, 2, 4], flag_meanings: "cloud snow night" };
  const texts: readonly (readonly [MemoryArray, string])[] = [
    [scalar("f4", "<f4", Float32Array.of(0.1)), "0.1"],
    [scalar("f8", "<f8", Float64Array.of(0.1 + 0.2)), "0.30000000000000004"],
    [scalar("f2", "<f2", Uint16Array.of(0x2e66)), "0.1"],
    [scalar("big", "<u8", BigUint64Array.of(2n ** 64n - 1n)), "18446744073709551615"],
    [scalar("bool", "|b1", Uint8Array.of(1)), "true"],
    [scalar("c8", "<c8", Float32Array.of(1.5, -2)), "1.5-2j"],
    [scalar("packed", "<i2", Int16Array.of(2731), { scale_factor: 0.1, add_offset: 0.05 }), "273.15"],
    [scalar("missing", "<i2", Int16Array.of(-1), { _FillValue: -1 }), "missing"],
    [scalar("nan", "<f4", Float32Array.of(Number.NaN)), "missing"],
    [scalar("infinite", "<f4", Float32Array.of(Number.NEGATIVE_INFINITY)), "-Infinity"],
    [scalar("flag", "|i1", Int8Array.of(2), flags), "sea (2)"],
    [scalar("mask", "|u1", Uint8Array.of(5), masks), "cloud, night (5)"],
    [scalar("date", "<f8", Float64Array.of(24), TIME), "2013-01-02T00:00:00"],
    [scalar("month", "<M8[M]", BigInt64Array.of(-1n)), "1969-12"],
    [scalar("span", "<m8[25us]", BigInt64Array.of(3n)), "3 25us"],
    [scalar("text", "|S3", Uint8Array.of(0x68, 0xc3, 0xa9)), "hé"],
    [scalar("latin", "|S1", Uint8Array.of(0xe9)), "é"],
  ];
  const { client, opened } = await openExplore(
    t,
    { datasets: [datasetWith(...texts.map(([array]) => array))] },
    "d",
  );
  for (const [{ name }, text] of texts) {
    const answer = await client.ask({ kind: "text", variable: name, maxCount: 10 }, "text");
    t.same(answer, { ...answer, texts: [text], length: 1 }, name);
  }
  t.ok(opened.dataset.variables.every(({ form }) => form === "text"));
  t.same(opened.dataset.attrs, { title: "x" });
});

t.test("types that a browser cannot read are a sentence", async (t) => {
  const record = [["a", "<i4"]] as const;
  const dataset = datasetWith({ name: "v", data: Int32Array.of(1, 2), dtype: record, shape: [2] });
  const { client, opened } = await openExplore(t, { datasets: [dataset] }, "d");
  const [variable] = opened.dataset.variables;
  t.match(variable, { form: "text", problem: /^Values of the type .* cannot be shown in a browser\.$/ });
  const failed = await client.ask({ kind: "text", variable: "v", maxCount: 1 }, "failed");
  t.equal(failed.sentence, variable?.problem);
  t.match(await client.ask({ kind: "text", variable: "no", maxCount: 1 }, "failed"), {
    sentence: '"no" is not in this dataset.',
  });
});

t.test("lengths of zero, constants, and variables that are all missing", async (t) => {
  const dataset = datasetWith(
    { name: "none", data: new Float32Array(0), shape: [0, 4], chunks: [1, 4] },
    { name: "same", data: new Float32Array(8).fill(5), shape: [2, 4] },
    { name: "all", data: new Float32Array(8).fill(Number.NaN), shape: [2, 4], dims: ["a", "b"] },
  );
  const { client, opened } = await openExplore(t, { datasets: [dataset] }, "d");
  const none = opened.dataset.variables.find(({ path }) => path === "none");
  t.equal(none?.form, "text");
  t.match(await client.ask({ kind: "text", variable: "none", maxCount: 3 }, "text"), {
    texts: [],
    length: 0,
  });
  const range = (variable: string) =>
    client.ask(
      { kind: "range", selection: { variable, at: [0, 0] }, axes: { x: 1, y: 0 }, percentiles: [2, 98] },
      "range",
    );
  t.match(await range("same"), { range: { low: 4, high: 6 }, least: 5, greatest: 5, count: 8, missing: 0 });
  t.match(await range("all"), { range: undefined, bins: [], count: 8, missing: 8 });
  const series = await client.ask(
    { kind: "series", selection: { variable: "none", at: [0, 0] }, along: 0, isConfirmed: false },
    "series",
  );
  t.match(series, { done: 0, total: 0 });
  t.equal(series.values.length, 0);
});

t.test("a range is found over several steps, without padding", async (t) => {
  const values = Float32Array.from(
    { length: 5 * 7 * 7 },
    (_, index) => Math.floor(index / 49) * 10 + (index % 49) / 100,
  );
  const dataset = datasetWith({
    name: "v",
    data: values,
    shape: [5, 7, 7],
    dims: ["time", "y", "x"],
    chunks: [1, 5, 5],
    attrs: { valid_min: 0.1 },
  });
  const { client } = await openExplore(t, { datasets: [dataset] }, "d");
  const request = {
    kind: "range" as const,
    selection: { variable: "v", at: [2, 0, 0] },
    axes: { x: 2, y: 1 },
  };
  const all = await client.ask({ ...request, percentiles: [0, 100] }, "range");
  t.ok(all.least < 1 && all.greatest > 40, "the first and the last step are in it");
  t.equal(
    all.bins.reduce((sum, count) => sum + count, 0),
    all.count - all.missing,
  );
  const box = { left: -0.5, right: 6.5, top: -0.5, bottom: 6.5 };
  const viewport = { box, width: 7, height: 7, inCells: true };
  const seen = await client.ask({ ...request, percentiles: [0, 100], viewport }, "range");
  t.same([seen.count, seen.missing], [49, 0]);
  t.same([seen.least, seen.greatest].map(Math.fround), [20, 20.48].map(Math.fround));
});

t.test("a range is found without the chunks that cannot be read, unless none can", async (t) => {
  const values = [1, 2, 3, 4, 5, 6, 7, 8];
  const store = await startStore(t, {
    v: { dtype: "<f4", shape: [4, 2], chunks: [1, 2], dims: ["y", "x"], values },
  });
  const { client } = await openStore(store);
  const selection = { variable: "v", at: [0, 0] };
  const request = { kind: "range", selection, axes: { x: 1, y: 0 }, percentiles: [0, 100] } as const;
  store.answer(/v\//, 500, "{}");
  t.match(await client.ask(request, "failed"), { sentence: /500/ });
  store.answer(/v\/3/, 500, "{}");
  t.match(await client.ask(request, "range"), { least: 1, greatest: 6, count: 6 });
  const box = { left: -0.5, right: 1.5, top: -0.5, bottom: 3.5 };
  const viewport = { box, width: 2, height: 4, inCells: true };
  t.match(await client.ask({ ...request, viewport }, "range"), { least: 1, greatest: 6, count: 6 });
});

t.test("series come in parts, are asked about if they are many, and can be cancelled", async (t) => {
  const shape = [900, 2, 3];
  const values = Array.from({ length: 5400 }, (_, index) => index);
  const v = {
    dtype: "<f4",
    shape,
    chunks: [1, 2, 3],
    dims: ["t", "y", "x"],
    values,
    fill: 10,
    absent: ["7.0.0"],
  };
  const store = await startStore(t, { v });
  const { client } = await openStore(store);
  const request = { kind: "series" as const, selection: { variable: "v", at: [0, 1, 1] }, along: 0 };
  t.match(await client.ask({ ...request, isConfirmed: false }, "too-much"), { chunks: 900, bytes: 21_600 });
  store.hold(/v\/(?:5|9)\d\./);
  const cancelled = client.send({ ...request, isConfirmed: true });
  const part = await client.waitFor((answer) => answer.id === cancelled && answer.kind === "series");
  const { values: known, done } = part as Answer<"series">;
  t.ok(done >= 1 && done < 900);
  t.same([known[0], known[99]], [4, Number.NaN]);
  await store.waiting(6);
  client.send({ kind: "cancel", request: cancelled });
  await store.waiting(0);
  t.equal(store.aborted.length, 6);
  store.hold(undefined);
  const series = await client.ask({ ...request, isConfirmed: true }, "series");
  t.same(
    [...series.values],
    Array.from({ length: 900 }, (_, index) =>
      index === 7 || index * 6 + 4 === 10 ? Number.NaN : index * 6 + 4,
    ),
  );
  const across = await client.ask({ ...request, along: 2, isConfirmed: false }, "series");
  t.same([...across.values], [3, 4, 5]);
  store.answer(/v\/3\./, 503, '{"detail":"Too many requests at once; try again later"}');
  const { client: fresh } = await openStore(store);
  const id = fresh.send({ ...request, isConfirmed: true });
  const failed = await fresh.waitFor((answer) => answer.id === id && answer.kind === "failed");
  t.match(failed, { sentence: /503, "Too many requests/, mayRetry: true });
});

t.test("a damaged chunk of a real server is a failure with the id that its log has", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "zpublish-explore-"));
  t.teardown(() => rm(directory, { recursive: true, force: true }));
  await mkdir(join(directory, "v"));
  const write = (path: string, document: unknown) =>
    writeFile(join(directory, path), JSON.stringify(document));
  await write(".zgroup", { zarr_format: 2 });
  const rest = { zarr_format: 2, order: "C", filters: null, compressor: null, fill_value: null };
  await write("v/.zarray", { shape: [2, 4], chunks: [2, 2], dtype: "|u1", ...rest });
  await writeFile(join(directory, "v/0.0"), Uint8Array.of(1, 2, 3));
  const config = { id: "d", location: directory, immutable: false, encoding: {}, variables: {} };
  const { client, server } = await openExplore(t, { datasets: [config] }, "d");
  const box = { left: -0.5, right: 3.5, top: -0.5, bottom: 1.5 };
  const id = client.send({
    kind: "show",
    selection: { variable: "v", at: [0, 0] },
    axes: { x: 1, y: 0 },
    viewport: { box, width: 4, height: 2, inCells: true },
    range: { low: 0, high: 9, isLog: false },
    isMoving: false,
    isConfirmed: false,
  });
  const failed = (await client.waitFor(
    (answer) => answer.id === id && answer.kind === "failed",
  )) as Answer<"failed">;
  t.match(
    failed.sentence,
    /^Chunk 0\.0 of v could not be read: the server answers 500, "The stored data is corrupt"/,
  );
  t.ok(failed.requestId !== undefined && JSON.stringify(server.lines).includes(failed.requestId));
  const frame = client.answers.findLast((answer) => answer.kind === "frame") as Answer<"frame">;
  t.same([...frame.pixels], [UNREAD, UNREAD, MISSING, MISSING, UNREAD, UNREAD, MISSING, MISSING]);
  await server.server.close();
  const other = createExploreClient();
  t.match(await other.ask(openRequest(server, "d"), "failed"), { sentence: /^The server does not answer/ });
});

t.test("groups and damaged metadata", async (t) => {
  const array = { dtype: "<f4", shape: [2], chunks: [2], dims: ["x"], values: [1, 2] };
  const store = await startStore(t, { "a/x": array, "a/b/v": array });
  const { client, opened } = await openStore(store);
  const open = { kind: "open", store: store.url, overviews: undefined, group: "", token: undefined } as const;
  const inner = opened.dataset.variables.find(({ path }) => path === "a/b/v");
  t.equal(inner?.axes[0]?.coordinate, "a/x", "coordinates of groups above are inherited");
  store.answer(/\.zmetadata/, 200, "{");
  t.match(await client.ask(open, "failed"), { sentence: /^Unexpected error: / });
  store.answer(/\.zmetadata/, 404, "");
  t.match(await client.ask(open, "failed"), {
    sentence: "This dataset no longer exists.",
  });
  store.answer(/\.zmetadata/, 401, '{"detail":"Unauthorized"}');
  t.match(await client.ask(open, "failed"), {
    sentence: /the server asks for a token\.$/,
  });
});

registerCodecs();

const BYTE_LENGTH = 6048;
/** Farther than LZ4 reaches, in several blocks of each format. */
const LONG_BYTE_LENGTH = 291_024;
const ROUNDS = effort(20);

const CODECS: readonly CodecSpec[] = [
  ...["lz4", "blosclz", "zlib", "zstd"].flatMap((cname) =>
    [0, 1, 2].flatMap((shuffle) =>
      [0, 512].map((blocksize) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize })),
    ),
  ),
  { id: "blosc", cname: "lz4", clevel: 0, shuffle: 1, blocksize: 0 },
  ...["lz4", "zstd", "gzip", "zlib"].map((id) => ({ id })),
  ...[2, 4, 12].map((elementsize) => ({ id: "shuffle", elementsize })),
];

t.test("whole chunks decode to what the server's decoders make of them", async (t) => {
  let index = 0;
  for (const codec of CODECS) {
    for (const byteLength of [0, 12, BYTE_LENGTH, LONG_BYTE_LENGTH]) {
      const kind = SAMPLE_KINDS[index++ % SAMPLE_KINDS.length]!;
      const itemSize = [1, 2, 4, 8, 12][index % 5]!;
      const sample = sampleOf(kind, byteLength, itemSize);
      const encoded = await encodeChunk(sample, stepOf(codec, sample.length, itemSize));
      const decoded = await decode(encoded, codec, sample.length);
      t.ok(Buffer.compare(decoded, sample) === 0, `${JSON.stringify(codec)}, ${byteLength} bytes of ${kind}`);
      // zarrita makes views of the whole buffer.
      t.ok(decoded.byteOffset === 0, "it begins with its buffer");
    }
  }
});

t.test("frames of zstd that no block is like are decoded", async (t) => {
  const random = createRandom(7);
  const noise = (length: number) => Uint8Array.from({ length }, () => Math.floor(random() * 256));
  const frames = [
    ...[1, 255, 256, 70_000].map((length) => [length, zstdFrame(noise(length))] as const),
    ...[2 ** 17, 3 * 2 ** 17].flatMap((length) =>
      [zstdRuns(length), zstdPatterns(length)].map((frame) => [length, frame] as const),
    ),
  ];
  for (const [byteLength, frame] of frames) {
    const expected = await decodeSteps(frame, [stepOf({ id: "zstd" }, byteLength)], "frame");
    for (const known of [byteLength, undefined])
      t.ok(Buffer.compare(await decode(frame, { id: "zstd" }, known), expected) === 0, `${byteLength} bytes`);
    await t.rejects(decode(frame, { id: "zstd" }, byteLength + 1));
  }
});

t.test("a checksum of zstd is checked", async (t) => {
  // XXH64 of "abc", from the reference implementation's tests: 44bc2cf5ad770999.
  t.equal(xxh64(Buffer.from("abc")).toString(16), "44bc2cf5ad770999");
  t.equal(xxh64(new Uint8Array(0)).toString(16), "ef46db3751d8e999");
  for (const length of [1, 5, 12, 31, 32, 39, 4000]) {
    const bytes = sampleOf("words", length);
    const frame = Buffer.concat([zstdFrame(bytes), Buffer.alloc(4)]);
    frame[4]! |= 4;
    frame.writeUInt32LE(Number(xxh64(bytes) & 0xffffffffn), frame.length - 4);
    t.ok(Buffer.compare(await decode(frame, { id: "zstd" }, bytes.length), bytes) === 0);
    // Node.js has the decoder from 22.15 on; without it, numcodecs.js checks as well.
    t.same(
      new Uint8Array(await decodeSteps(frame, [stepOf({ id: "zstd" }, length)], "frame")),
      new Uint8Array(bytes),
    );
    frame[10]! ^= 1;
    await t.rejects(decode(frame, { id: "zstd" }, bytes.length), { code: "corrupt-chunk" });
  }
});

t.test("Snappy in Blosc is decoded", async (t) => {
  const frame = bloscFrame(streamFrame(INNER.snappy, snappyStream(PLAIN.subarray(0, 60), PLAIN.length)));
  const expected = await decodeSteps(frame, [stepOf({ id: "blosc" }, PLAIN.length)], "frame");
  t.same(await decode(frame, { id: "blosc" }, PLAIN.length), new Uint8Array(expected));
});

t.test("damaged chunks are errors, or decode as the server decodes them", async (t) => {
  const failures: string[] = [];
  let lenient = 0;
  let count = 0;
  for (const [index, codec] of CODECS.entries()) {
    if (codec.id === "shuffle") continue;
    const itemSize = [1, 2, 4, 8][index % 4]!;
    const sample = sampleOf(SAMPLE_KINDS[index % SAMPLE_KINDS.length]!, BYTE_LENGTH, itemSize);
    const step = stepOf(codec, sample.length, itemSize);
    const encoded = await encodeChunk(sample, step);
    const damaged = mutations(encoded, [encoded], createRandom(index + 1));
    for (let round = 0; round < ROUNDS * MUTATION_KINDS.length; round++) {
      const { kind, bytes } = damaged.next().value;
      count++;
      const expected = await decodeSteps(bytes, [step], "chunk").catch(() => undefined);
      const decoded = await decode(bytes, codec, sample.length).catch(() => undefined);
      if (decoded === undefined && expected === undefined) continue;
      if (expected === undefined) lenient++;
      else if (decoded === undefined || Buffer.compare(decoded, expected) !== 0)
        failures.push(
          `${JSON.stringify(codec)} ${kind}: expected ${expected.length} bytes, received ${decoded?.length}`,
        );
      if (expected === undefined && !/zstd/.test(JSON.stringify(codec)))
        failures.push(`${JSON.stringify(codec)} ${kind}: expected an error`);
    }
  }
  t.same(failures.slice(0, 20), [], `${failures.length} of ${count}; ${lenient} lenient`);
});

async function decode(
  bytes: Uint8Array,
  { id, ...options }: CodecSpec,
  byteLength: number | undefined,
): Promise<Uint8Array> {
  const entry = await registry.get(`numcodecs.${id}`)!();
  const sized = byteLength === undefined ? options : { ...options, [DECODED_BYTES]: byteLength };
  const codec = entry.fromConfig(sized, undefined as never) as unknown as {
    decode(bytes: Uint8Array): Promise<Uint8Array>;
  };
  return codec.decode(new Uint8Array(bytes));
}
