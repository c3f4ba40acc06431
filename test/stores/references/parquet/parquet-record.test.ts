import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { ZpublishError } from "../../../../src/errors.js";
import { readHybrid, readThrift } from "../../../../src/stores/parquet.js";
import { readParquetRecord } from "../../../../src/stores/references.js";
import { PACKAGE_ROOT } from "../../../client-generation.js";

/** Written by `write_parquet_references.py`. */
const FIXTURES = join(PACKAGE_ROOT, "test/fixtures/parquet-references");

t.test("a damaged byte ends in an error or in other references, never in a crash or a hang", async (t) => {
  for (const writer of ["fastparquet", "snappy", "zstd-pages", "plain"]) {
    const whole = await readFile(join(FIXTURES, writer, "t/refs.0.parq"));
    let refused = 0;
    for (let at = 0; at < whole.length; at++) {
      const damaged = Uint8Array.from(whole);
      damaged[at]! ^= 0xff;
      try {
        (await readParquetRecord("refs.0.parq", damaged))(0);
      } catch (error) {
        refused++;
        if (!(error instanceof ZpublishError && error.code === "invalid-metadata"))
          t.fail(`byte ${at}: ${error}`);
      }
    }
    t.ok(refused > 100, `${writer}: ${refused} refused`);
    for (let length = 0; length < whole.length; length += 7) {
      await t.rejects(readParquetRecord("refs.0.parq", Uint8Array.from(whole.subarray(0, length))), {
        code: "invalid-metadata",
        message: /^'refs.0.parq': /,
      });
    }
  }
});

t.test("reads runs and packed integers of any width", async (t) => {
  t.same([...readHybrid(Uint8Array.of(8, 5), 3, 4)], [5, 5, 5, 5], "a run");
  // The example of Parquet's specification.
  t.same(
    [...readHybrid(Uint8Array.of(3, 0b10001000, 0b11000110, 0b11111010), 3, 8)],
    [0, 1, 2, 3, 4, 5, 6, 7],
  );
  t.same(
    [...readHybrid(Uint8Array.of(3, 0b10001000, 0b11000110, 0b11111010, 4, 6), 3, 10)].slice(7),
    [7, 6, 6],
  );
  t.same([...readHybrid(Uint8Array.of(6), 0, 3)], [0, 0, 0]);
  t.same([...readHybrid(Uint8Array.of(2, 255, 255, 255, 255), 32, 1)], [2 ** 32 - 1]);
  t.same([...readHybrid(Uint8Array.of(3, ...Array(32).fill(255)), 32, 2)], [2 ** 32 - 1, 2 ** 32 - 1]);
  t.same([...readHybrid(Uint8Array.of(), 7, 0)], []);
  for (const [bytes, width] of [
    [[], 1],
    [[0, 0], 1],
    [[1], 0],
    [[3], 3],
    [[8], 3],
    [[8, 5], 33],
    [[255, 255, 255, 255, 255, 255], 1],
  ] as const) {
    t.throws(() => readHybrid(Uint8Array.from(bytes), width, 4), /expected/, String(bytes));
  }
});

t.test("reads metadata within bounds", async (t) => {
  const { struct, end } = readThrift(
    Uint8Array.of(0x15, 3, 0x18, 2, 65, 66, 0x29, 0x25, 1, 2, 0x11, 0x12, 0, 9),
    0,
  );
  t.same([struct.get(1), Buffer.from(struct.get(2) as Uint8Array).toString()], [-2, "AB"]);
  t.same([struct.get(4), struct.get(5), struct.get(6)], [[-1, 1], true, false]);
  t.equal(end, 13);
  for (const bytes of [
    [],
    [0x15],
    [0x15, 128],
    [0x15, ...Array(20).fill(255), 0],
    [0x18, 200],
    [0x19, 0xf5, 255, 255, 255, 255, 15],
    [0x1d],
    Array(100).fill(0x1c),
  ]) {
    t.throws(() => readThrift(Uint8Array.from(bytes), 0), /expected/, String(bytes).slice(0, 40));
  }
});
