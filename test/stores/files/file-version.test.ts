import t from "tap";
import { remainingSettleMs } from "../../../src/stores/file-calls.js";

/** Returns the remaining settle time of a file that was written `agoMs` ago. @param clockNs Resolution of the file system's times. */
function remaining(agoMs: number, clockNs: bigint): number {
  const mtimeNs = BigInt(Date.now() - agoMs) * 1_000_000n + 1n;
  return remainingSettleMs({ mtimeNs: mtimeNs - (mtimeNs % clockNs) });
}

t.test("a file is settled when another write must change its time", async (t) => {
  t.equal(remaining(100, 1n), 0);
  t.equal(remaining(2_100, 1_000_000_000n), 0, "on a file system with whole seconds");
  t.equal(remaining(3_100, 2_000_000_000n), 0);
  t.equal(remaining(-5_000, 1n), 0, "a time in the future");
  const fine = remaining(5, 1n);
  t.ok(fine > 0 && fine <= 15, `${fine} ms`);
  // Rounded down to a whole second, the file seems up to 1 s older.
  const coarse = remaining(5, 1_000_000_000n);
  t.ok(coarse > 900 && coarse <= 2_000, `${coarse} ms`);
});
