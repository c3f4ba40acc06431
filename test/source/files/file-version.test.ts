import t from "tap";
import { remainingSettleMs } from "../../../src/source/files/file-version.js";

/** Of a file that was written so many milliseconds ago. @param clockNs What its file system's times are multiples of. */
function remaining(agoMs: number, clockNs: bigint): number {
  const mtimeNs = BigInt(Date.now() - agoMs) * 1_000_000n + 1n;
  return remainingSettleMs({ mtimeNs: mtimeNs - (mtimeNs % clockNs) });
}

t.test("a file is settled when another write must change its time", async (t) => {
  t.equal(remaining(100, 1n), 0);
  t.equal(remaining(2_100, 1_000_000_000n), 0, "by the clock of the file system");
  t.equal(remaining(3_100, 2_000_000_000n), 0);
  t.equal(remaining(-5_000, 1n), 0, "a time in the future says nothing");
  const fine = remaining(5, 1n);
  t.ok(fine > 0 && fine <= 15, `${fine} ms`);
  // A whole second: 0 to 1 s older than it is.
  const coarse = remaining(5, 1_000_000_000n);
  t.ok(coarse > 900 && coarse <= 2_000, `${coarse} ms`);
});
