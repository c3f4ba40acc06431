import t from "tap";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { clientMissing } from "../support/clients/require-client.js";
import { checkBothWays, type NativeCase } from "../support/codec/native-checks.js";
import { SAMPLE_KINDS, type SampleKind, sampleOf } from "../support/codec/sample-bytes.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

const LEVELS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
const ACCELERATIONS = [1, 2, 3, 5, 10, 50, 1000, 65_537, 2 ** 31 - 1];
const ELEMENT_SIZES = [1, 2, 3, 4, 7, 8, 12, 16, 24, 255];

const LZ4: CodecSpec[] = ACCELERATIONS.map((acceleration) => ({ id: "lz4", acceleration }));
const ZSTD: CodecSpec[] = [-7, ...LEVELS, 15, 22].map((level) => ({ id: "zstd", level }));
const GZIP: CodecSpec[] = LEVELS.map((level) => ({ id: "gzip", level }));
const ZLIB: CodecSpec[] = LEVELS.map((level) => ({ id: "zlib", level }));
const FILTERS: CodecSpec[] = [
  ...ELEMENT_SIZES.map((elementsize) => ({ id: "shuffle", elementsize })),
  { id: "crc32" },
  { id: "adler32" },
];

const SHORT = [0, 1, 2, 3, 4, 5, 7, 8, 11, 12, 13, 15, 16, 17, 31, 63, 64, 65, 127, 128, 255, 256, 1000];
/** Around LZ4's reach and small table, deflate's window and longest stored block, the blocks of zstd. */
const MIDDLE = [4096, 32_767, 32_769, 65_535, 65_536, 65_537, 65_547, 2 * 65_535, 2 ** 17 - 1, 2 ** 17 + 1];
const LONG = [2 ** 20 + 17];
const HUGE = 64 * 2 ** 20;

for (const [name, codecs] of Object.entries({
  LZ4,
  Zstandard: ZSTD,
  gzip: GZIP,
  zlib: ZLIB,
  filters: FILTERS,
})) {
  t.test(`${name}: chunks of all levels and lengths go from here to native and back`, { skip }, async (t) => {
    await checkBothWays(t, [
      ...casesOf(codecs, SHORT, SAMPLE_KINDS.length),
      ...casesOf(codecs, MIDDLE, 3),
      ...casesOf(codecs, LONG, 1),
    ]);
  });
}

t.test("chunks of 64 MiB go from here to native and back", { skip }, async (t) => {
  await checkBothWays(t, [
    caseOf({ id: "lz4", acceleration: 1 }, "smooth", HUGE),
    caseOf({ id: "lz4", acceleration: 5 }, "noise", HUGE),
    caseOf({ id: "zstd", level: 1 }, "counting", HUGE),
    caseOf({ id: "gzip", level: 1 }, "zeros", HUGE),
    caseOf({ id: "zlib", level: 1 }, "repeating", HUGE),
    caseOf({ id: "shuffle", elementsize: 4 }, "smooth", HUGE),
    caseOf({ id: "crc32" }, "noise", HUGE),
  ]);
});

/** Every codec with every length; so many contents of each, which take turns. */
function* casesOf(
  codecs: readonly CodecSpec[],
  byteLengths: readonly number[],
  kinds: number,
): Generator<NativeCase> {
  let turn = 0;
  for (const codec of codecs) {
    for (const byteLength of byteLengths) {
      for (let count = 0; count < kinds; count++) {
        yield caseOf(codec, SAMPLE_KINDS[turn++ % SAMPLE_KINDS.length]!, byteLength);
      }
    }
    // Keeps the turns from falling together with the lengths.
    turn++;
  }
}

function caseOf(codec: CodecSpec, kind: SampleKind, byteLength: number): NativeCase {
  const unit = typeof codec.elementsize === "number" ? codec.elementsize : 1;
  const bytes = sampleOf(kind, byteLength - (byteLength % unit));
  return { codec, itemSize: 1, bytes, label: `${JSON.stringify(codec)} of ${bytes.length} ${kind} bytes` };
}
