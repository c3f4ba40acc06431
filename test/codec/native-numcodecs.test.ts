import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import {
  type BloscCase,
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

// A few of the cases of blosc-agreement.long, native-agreement.long and blosc-size.long.

const skip = clientMissing("numcodecs");

const MAX_BYTES = 2 ** 17;

/** One of so many. */
function* some(cases: Iterable<BloscCase>, stride: number): Generator<NativeCase> {
  let turn = 0;
  for (const one of cases) {
    if (turn++ % stride === 0 && one.byteLength <= MAX_BYTES) yield* nativeCases([one]);
  }
}

t.test("Blosc chunks go from here to native and back", { skip }, (t) =>
  checkBothWays(t, [
    ...some(smallBloscCases(ENCODED_CNAMES), 97),
    ...some(largeBloscCases(ENCODED_CNAMES), 7),
  ]),
);

t.test("Blosc chunks that are only decoded here come from native", { skip }, (t) =>
  checkNativeEncodings(t, [
    ...some(smallBloscCases(DECODED_CNAMES), 97),
    ...some(largeBloscCases(DECODED_CNAMES), 3),
  ]),
);

t.test("Blosc chunks with lz4 have native's header and, within 5 %, its size", { skip }, (t) =>
  checkBloscSizes(t, [...some(smallBloscCases(["lz4"]), 97), ...some(largeBloscCases(["lz4"]), 7)]),
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
