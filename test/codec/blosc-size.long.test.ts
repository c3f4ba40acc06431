import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import {
  hugeBloscCases,
  largeBloscCases,
  nativeCases,
  smallBloscCases,
} from "../support/codec/blosc-cases.js";
import { checkBloscSizes } from "../support/codec/native-checks.js";

t.setTimeout(240_000);

// What zlib and zstd make of a block is up to the library and its version.
for (const cases of [smallBloscCases, largeBloscCases, hugeBloscCases]) {
  t.test(
    `Blosc chunks with lz4 have native's header and, within 5 %, its size: ${cases.name}`,
    { skip: clientMissing("numcodecs") },
    (t) => checkBloscSizes(t, nativeCases(cases(["lz4"]))),
  );
}
