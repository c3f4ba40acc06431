import t from "tap";
import { clientMissing } from "../require-client.js";
import { hugeBloscCases, largeBloscCases, nativeCases, smallBloscCases } from "./blosc-cases.js";
import { checkBloscSizes } from "./native-checks.js";

t.setTimeout(240_000);

// What zlib and zstd make of a block is up to the library and its version.
for (const cases of [smallBloscCases, largeBloscCases, hugeBloscCases]) {
  t.test(
    `Blosc chunks with lz4 have native's header and, within 5 %, its size: ${cases.name}`,
    { skip: clientMissing("numcodecs") },
    (t) => checkBloscSizes(t, nativeCases(cases(["lz4"]))),
  );
}
