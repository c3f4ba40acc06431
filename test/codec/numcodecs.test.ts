import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import t from "tap";
import { adler32Of, crc32c } from "../../src/codec/checksums.js";
import { clientMissing } from "../support/clients/require-client.js";
import {
  DECODED_CNAMES,
  ENCODED_CNAMES,
  largeBloscCases,
  nativeCases,
  smallBloscCases,
} from "../support/codec/blosc-cases.js";
import {
  checkBloscSizes,
  checkBothWays,
  checkNativeEncodings,
  type NativeCase,
} from "../support/codec/native-checks.js";
import { sampleOf } from "../support/codec/sample-bytes.js";
import { effort } from "../support/effort.js";

t.setTimeout(240_000);

t.test("a thread that could not load a codec is worn out, and not wrong for ever", async (t) => {
  const program = fileURLToPath(new URL("../support/codec/exhaust-descriptors.js", import.meta.url));
  const { stdout } = await promisify(execFile)("sh", [
    "-c",
    'ulimit -n 64; exec "$1" "$2"',
    "sh",
    process.execPath,
    program,
  ]);
  const { without, isWornOut } = JSON.parse(stdout);
  t.not(without, "loaded", without);
  t.ok(isWornOut);
});

const skip = clientMissing("numcodecs");

const IS_LONG = effort(10) > 1;
const MAX_BYTES = IS_LONG ? 2 ** 23 : 2 ** 17;
/** One of so many cases is tried. Both strides have no factor in common with the lists. */
const STRIDE = IS_LONG ? 11 : 97;

function* some(cnames: readonly string[]): Generator<NativeCase> {
  let turn = 0;
  for (const one of smallBloscCases(cnames)) if (turn++ % STRIDE === 0) yield* nativeCases([one]);
  for (const one of largeBloscCases(cnames)) {
    if ((IS_LONG || turn++ % 5 === 0) && one.byteLength <= MAX_BYTES) yield* nativeCases([one]);
  }
}

t.test("Blosc chunks go from here to native and back", { skip }, (t) =>
  checkBothWays(t, some(ENCODED_CNAMES)),
);

t.test("Blosc chunks that are only decoded here come from native", { skip }, (t) =>
  checkNativeEncodings(t, some(DECODED_CNAMES)),
);

t.test("Blosc chunks with lz4 have native's header and, within 5 %, its size", { skip }, (t) =>
  checkBloscSizes(t, some(["lz4"])),
);

t.test("chunks of other codecs go from here to native and back", { skip }, (t) =>
  checkBothWays(
    t,
    [
      { id: "lz4", acceleration: 1 },
      ...[-7, 3].map((level) => ({ id: "zstd", level })),
      ...["gzip", "zlib"].flatMap((id) => [1, 9].map((level) => ({ id, level }))),
      { id: "shuffle", elementsize: 4 },
      { id: "crc32" },
      { id: "adler32" },
    ].flatMap((codec) =>
      [4, 1000, 65_536, MAX_BYTES].map((byteLength) => ({
        codec,
        itemSize: 1,
        bytes: sampleOf("words", byteLength),
        label: `${JSON.stringify(codec)} of ${byteLength} bytes`,
      })),
    ),
  ),
);

/** As RFC 1950 has it. */
function plainAdler32(bytes: Uint8Array): number {
  let low = 1;
  let high = 0;
  for (const byte of bytes) {
    low = (low + byte) % 65521;
    high = (high + low) % 65521;
  }
  return ((high << 16) | low) >>> 0;
}

/** Bit by bit. */
function plainCrc32c(bytes: Uint8Array): number {
  let crc = -1;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
  }
  return ~crc >>> 0;
}

t.test("checksums are right for every length and address, and where sums are largest", async (t) => {
  const noise = new Uint8Array(1000).map((_, i) => (Math.imul(i + 1, 2654435761) >>> 13) & 0xff);
  const full = new Uint8Array(100_003).fill(255);
  for (let offset = 0; offset < 9; offset++) {
    for (let length = 0; length <= 200; length++) {
      const bytes = noise.subarray(offset, offset + length);
      if (adler32Of(bytes) !== plainAdler32(bytes)) t.fail(`adler32 of ${length} bytes at ${offset}`);
      if (crc32c(bytes) !== plainCrc32c(bytes)) t.fail(`crc32c of ${length} bytes at ${offset}`);
    }
    const bytes = full.subarray(offset);
    t.equal(adler32Of(bytes), plainAdler32(bytes));
    t.equal(crc32c(bytes), plainCrc32c(bytes));
  }
});
