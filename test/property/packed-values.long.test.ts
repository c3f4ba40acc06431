import fc from "fast-check";
import t from "tap";
import * as zarr from "zarrita";
import type { NumberName } from "../support/codec/exact-numbers.js";
import {
  COLUMNS,
  type EncodedArray,
  exactValues,
  ROWS,
  serveEncoded,
} from "../support/datasets/value-codec-store.js";
import { effort } from "../support/effort.js";
import type { Teardown } from "../support/write-store.js";

t.setTimeout(600_000);

const COUNT = ROWS * COLUMNS;

/** Bounds of a type of integers. */
function boundsOf(type: string): [number, number] {
  const span = 2 ** (8 * Number(type[1]));
  return type[0] === "u" ? [0, span - 1] : [-span / 2, span / 2 - 1];
}

/** Arrays of all kinds; about half of them can be packed. */
const anyArray: fc.Arbitrary<EncodedArray> = fc
  .constantFrom<NumberName>("i1", "u1", "i2", "u2", "i4", "u4")
  .chain((encoded) => {
    const [min, max] = boundsOf(encoded);
    const anyItem = fc.oneof(fc.integer({ min, max }), fc.constantFrom(min, max, 0)).map(BigInt);
    return fc.record({
      type: fc.constantFrom<"f4" | "f8">("f4", "f8"),
      encoded: fc.constant(encoded),
      scale: fc.constantFrom(1, 2, 0.25, -8, 0.1, 0.01, 10, 10_000, 3),
      offset: fc.constantFrom(0, -10, 0.5, -0.1, 273.15),
      mark: fc.option(anyItem, { nil: undefined }),
      fillValue: fc.constantFrom(0, 1, Number.NaN, 273.15),
      items: fc.array(anyItem, { minLength: COUNT, maxLength: COUNT }),
      isSharded: fc.boolean(),
    });
  });

/** Reads what a client that knows CF reads: in double precision, and in single precision too. */
async function readDecoded(url: string, mark: bigint | undefined) {
  const array = await zarr.open(new zarr.FetchStore(url), { kind: "array" });
  const { data } = await zarr.get(array);
  const read = Array.from(data as ArrayLike<number>);
  const { scale_factor: scale, add_offset: offset } = array.attrs as {
    scale_factor?: number;
    add_offset?: number;
  };
  if (scale === undefined || offset === undefined) return { isPacked: false, values: read };
  return {
    isPacked: true,
    values: read.map((item) =>
      mark !== undefined && BigInt(item) === mark ? Number.NaN : item * scale + offset,
    ),
  };
}

t.test(
  "packed numbers and decoded ones are the same bits, and those that the registry prescribes",
  async (t) => {
    let packedCount = 0;
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyArray, { minLength: 8, maxLength: 8 }), async (arrays) => {
        const ranged = { attributes: { valid_min: 0 } };
        const named = arrays.flatMap((array, index): [string, EncodedArray][] => [
          [`a${index}`, array],
          [`b${index}`, { ...array, ...ranged }],
        ]);
        const ends: (() => unknown)[] = [];
        const scope = { teardown: (end: () => unknown) => ends.unshift(end) } as Teardown;
        try {
          const { url } = await serveEncoded(scope, Object.fromEntries(named));
          for (const [name, array] of named) {
            const expected = exactValues(array);
            for (const prefix of ["zarr", "zarr3"] as const) {
              const { isPacked, values } = await readDecoded(
                `${url}/datasets/d/${prefix}/${name}`,
                array.mark,
              );
              const wrong = values.findIndex((value, at) => !Object.is(value, expected[at]));
              if (wrong >= 0 || values.length !== COUNT || (isPacked && name.startsWith("b"))) {
                throw new Error(
                  `${prefix}/${name}: ${values[wrong]} at ${wrong}, expected ${expected[wrong]}`,
                );
              }
              count++;
              if (isPacked) packedCount++;
            }
          }
        } finally {
          for (const end of ends) await end();
        }
      }),
      // A smaller example takes as long, and says no more.
      { numRuns: effort(40), endOnFailure: true },
    );
    t.ok(packedCount > 0 && packedCount < count / 2, `${packedCount} of ${count} arrays were packed`);
  },
);
