import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import {
  DECODED_CNAMES,
  ENCODED_CNAMES,
  hugeBloscCases,
  largeBloscCases,
  nativeCases,
  smallBloscCases,
} from "../support/codec/blosc-cases.js";
import { checkBothWays, checkNativeEncodings } from "../support/codec/native-checks.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

t.test("short chunks of every level, shuffle and typesize go from here to native and back", { skip }, (t) =>
  checkBothWays(t, nativeCases(smallBloscCases(ENCODED_CNAMES))),
);

t.test("long chunks go from here to native and back", { skip }, (t) =>
  checkBothWays(t, nativeCases(largeBloscCases(ENCODED_CNAMES))),
);

t.test("chunks of 64 MiB go from here to native and back", { skip }, (t) =>
  checkBothWays(t, nativeCases(hugeBloscCases(ENCODED_CNAMES))),
);

for (const cname of DECODED_CNAMES) {
  t.test(`what native encodes with ${cname} is decoded here`, { skip }, async (t) => {
    for (const cases of [smallBloscCases, largeBloscCases, hugeBloscCases]) {
      await checkNativeEncodings(t, nativeCases(cases([cname])));
    }
  });
}

t.test("blocks are decoded in whatever order the threads of native wrote them", { skip }, async (t) => {
  const cases = [...largeBloscCases(["lz4", "zstd"])].filter(({ byteLength }) => byteLength >= 2 ** 18);
  await checkNativeEncodings(
    t,
    [...nativeCases(cases)].map((one) => ({ ...one, threads: 4 })),
  );
});
