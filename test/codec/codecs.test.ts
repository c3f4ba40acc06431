import t from "tap";
import { CODECS } from "../../src/codec/codecs.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { encodeProblem, INTERNAL_RULES, RULED_CODEC_IDS } from "../../src/zarr/plan/codec-rules.js";
import { sampleBytes, sampleOf } from "../support/codec/sample-bytes.js";
import { stepOf } from "../support/codec/step.js";

const COMPRESSORS: CodecSpec[] = [
  ...["lz4", "zstd", "zlib"].flatMap((cname) =>
    [0, 1, 2, -1].map((shuffle) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize: 0 })),
  ),
  { id: "blosc", cname: "lz4", clevel: 0, shuffle: 1, blocksize: 0 },
  { id: "blosc", cname: "zstd", clevel: 9, shuffle: 2, blocksize: 4096 },
  { id: "blosc", cname: "lz4", clevel: 9, shuffle: 1, blocksize: 1024 },
  { id: "zstd", level: 1 },
  { id: "zstd", level: -7 },
  { id: "zstd", level: 22 },
  ...[0, 1, 9].flatMap((level) => [
    { id: "gzip", level },
    { id: "zlib", level },
  ]),
  { id: "lz4", acceleration: 1 },
  { id: "lz4", acceleration: 50 },
];

const FILTERS: CodecSpec[] = [
  ...[1, 2, 4, 8].map((elementsize) => ({ id: "shuffle", elementsize })),
  { id: "crc32" },
  { id: "adler32" },
];

t.test("codecs of files have none of the ids of numcodecs", async (t) => {
  const ids = Object.keys(INTERNAL_RULES);
  const numcodecs = [
    "astype",
    "base64",
    "bz2",
    "categorize",
    "fletcher32",
    "jenkins_lookup3",
    "json2",
    "lzma",
  ];
  for (const id of [...numcodecs, "msgpack2", "n5_wrapper", "packbits", "pcodec", "pickle", "zfpy"])
    t.notOk(ids.includes(id), id);
});

t.test("codecs have a rule and an implementation each", async (t) => {
  t.same(Object.keys(CODECS).sort(), [...RULED_CODEC_IDS].sort());
  for (const id of RULED_CODEC_IDS) {
    if (CODECS[id]?.encode === undefined)
      t.match(encodeProblem({ id }), /./, `${id} says that it only decodes`);
  }
});

t.test("encoding is the same every time, and the same for a view as for a whole buffer", async (t) => {
  for (const codec of [...COMPRESSORS, ...FILTERS]) {
    const bytes = sampleOf("smooth", 8192);
    const padded = new Uint8Array(new SharedArrayBuffer(8200));
    padded.set(bytes, 5);
    const step = stepOf(codec, bytes.length, 4);
    const first = await encodeSteps(bytes, [step], "");
    const second = await encodeSteps(padded.subarray(5, 5 + bytes.length), [step], "");
    t.same(Buffer.compare(first, second), 0, JSON.stringify(codec));
    t.not(first.buffer.byteLength > 2 ** 20, true, "no view of a WebAssembly heap");
  }
  const gzip = await encodeSteps(new Uint8Array(100), [stepOf({ id: "gzip", level: 1 }, 100)], "");
  t.same([...gzip.subarray(4, 8)], [0, 0, 0, 0], "no time of day in a gzip header");
});

t.test("a chunk of no bytes goes through every codec", async (t) => {
  for (const codec of [...COMPRESSORS, ...FILTERS]) {
    const step = stepOf(codec, 0);
    const encoded = await encodeSteps(new Uint8Array(0), [step], "");
    const decoded = await decodeSteps(encoded, [step], "");
    t.equal(decoded.length, 0, JSON.stringify(codec));
  }
});

t.test("an acceleration of LZ4 beyond its limits is taken for the limit", async (t) => {
  const bytes = sampleBytes(8192).smooth as Uint8Array;
  const encodedWith = (acceleration: number) =>
    encodeSteps(bytes, [stepOf({ id: "lz4", acceleration }, bytes.length)], "");
  for (const acceleration of [0, -1, -(2 ** 40)]) {
    t.equal(Buffer.compare(await encodedWith(acceleration), await encodedWith(1)), 0, `${acceleration}`);
  }
  for (const acceleration of [65_537, 2 ** 31 - 1, 2 ** 40]) {
    const decoded = await decodeSteps(
      await encodedWith(acceleration),
      [stepOf({ id: "lz4" }, bytes.length)],
      "",
    );
    t.equal(Buffer.compare(decoded, bytes), 0, `${acceleration}`);
  }
});

t.test("Blosc's shuffle by the names that GDAL writes", async (t) => {
  const bytes = sampleBytes(8192).smooth as Uint8Array;
  for (const [shuffle, name] of ["NONE", "BYTE", "BIT"].entries()) {
    const encodedWith = (option: number | string) => {
      const codec = { id: "blosc", cname: "lz4", clevel: 5, shuffle: option, blocksize: 0 };
      t.equal(encodeProblem(codec), undefined);
      return encodeSteps(bytes, [stepOf(codec, bytes.length, 4)], "");
    };
    t.equal(Buffer.compare(await encodedWith(name), await encodedWith(shuffle)), 0, name);
  }
});
