import t from "tap";
import { CODECS } from "../../src/codec/codecs.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { encodeProblem, RULED_CODEC_IDS } from "../../src/zarr/codec-rules.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { clientMissing } from "../require-client.js";
import { type NativeJob, runNative } from "./native-numcodecs.js";
import { sampleBytes } from "./sample-bytes.js";
import { stepOf } from "./step.js";

const skip = clientMissing("numcodecs");

const COMPRESSORS: CodecSpec[] = [
  ...["lz4", "lz4hc", "blosclz", "zstd", "zlib"].flatMap((cname) =>
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

/** Lengths around the borders of blocks and splits. */
const BYTE_LENGTHS = [8, 120, 1016, 40_008];

interface Case {
  readonly codec: CodecSpec;
  readonly label: string;
  readonly bytes: Uint8Array;
}

function casesOf(codecs: readonly CodecSpec[], byteLengths: readonly number[]): Case[] {
  return codecs.flatMap((codec) =>
    byteLengths.flatMap((byteLength) =>
      Object.entries(sampleBytes(byteLength)).map(([name, bytes]) => ({
        codec,
        label: `${JSON.stringify(codec)} of ${byteLength} ${name} bytes`,
        bytes,
      })),
    ),
  );
}

t.test("codecs have a rule and an implementation each", async (t) => {
  t.same(Object.keys(CODECS).sort(), [...RULED_CODEC_IDS].sort());
  for (const id of RULED_CODEC_IDS) {
    if (CODECS[id]?.encode === undefined)
      t.match(encodeProblem({ id }), /./, `${id} says that it only decodes`);
  }
});

t.test("native numcodecs decodes what is encoded here", { skip }, async (t) => {
  const cases = casesOf([...COMPRESSORS, ...FILTERS], BYTE_LENGTHS);
  const jobs: NativeJob[] = [];
  for (const { codec, bytes, label } of cases) {
    const step = stepOf(codec, bytes.length, 4);
    const encoded = await encodeSteps(bytes, [step], label);
    jobs.push({ operation: "decode", codec, bytes: encoded });
    const decoded = await decodeSteps(encoded, [step], label);
    if (Buffer.compare(decoded, bytes) !== 0) t.fail(`decoded here: ${label}`);
  }
  const answers = runNative(jobs);
  cases.forEach(({ bytes, label }, index) => {
    const answer = answers[index];
    if (answer === undefined || Buffer.compare(answer, bytes) !== 0) t.fail(label);
  });
  t.pass(`${cases.length} chunks`);
});

t.test("what native numcodecs encodes is decoded here", { skip }, async (t) => {
  const native = [
    ...COMPRESSORS.filter(({ level }) => level !== -7),
    ...[0, 1, 2].map((shuffle) => ({ id: "blosc", cname: "snappy", clevel: 5, shuffle, blocksize: 0 })),
    ...FILTERS,
  ];
  const cases = casesOf(native, [...BYTE_LENGTHS, 300_024]).flatMap((one) =>
    // Blosc takes its typesize from the type it is handed.
    (one.codec.id === "blosc" ? ["u1", "<u2", "<f4", "<f8", "S24"] : ["u1"])
      .filter((dtype) => dtype !== "S24" || one.bytes.length % 24 === 0)
      .map((dtype) => ({ ...one, dtype, label: `${one.label} as ${dtype}` })),
  );
  for (let from = 0; from < cases.length; from += 500) {
    const some = cases.slice(from, from + 500);
    const answers = runNative(some.map((one) => ({ operation: "encode", ...one })));
    for (const [index, { codec, bytes, label }] of some.entries()) {
      const encoded = answers[index];
      if (encoded === undefined) {
        t.fail(`refused by numcodecs: ${label}`);
        continue;
      }
      const decoded = await decodeSteps(encoded, [stepOf(codec, bytes.length)], label);
      if (Buffer.compare(decoded, bytes) !== 0) t.fail(label);
    }
  }
  t.pass(`${cases.length} chunks`);
});

t.test("encoding is the same every time, and the same for a view as for a whole buffer", async (t) => {
  for (const codec of [...COMPRESSORS, ...FILTERS]) {
    const bytes = sampleBytes(8192).smooth as Uint8Array;
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
