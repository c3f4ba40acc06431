import { type ByteCursor, invalidFile } from "./byte-cursor.js";
import { MAX_RANK } from "./parse-datatype.js";

/** A dataspace. */
export interface Dataspace {
  /** Null if it has no items. */
  readonly shape: readonly number[] | null;
  /** Null along axes without limit. */
  readonly maxShape: readonly (number | null)[];
}

/**
 * Parses a dataspace message (HDF5 File Format Specification, IV.A.2.b).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseDataspace(cursor: ByteCursor): Dataspace {
  const version = cursor.version(1, 2);
  const rank = cursor.u8();
  const flags = cursor.u8();
  const kind = cursor.u8();
  if (version === 1) cursor.skip(4);
  if (rank > MAX_RANK) throw invalidFile(`dataspace: expected at most ${MAX_RANK} axes, received ${rank}`);
  if (version === 2 && kind === 2) return { shape: null, maxShape: [] };
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) shape.push(cursor.u64());
  if ((flags & 1) === 0) return { shape, maxShape: shape };
  const maxShape: (number | null)[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const limit = cursor.optional();
    const length = shape[axis] as number;
    if (limit !== null && limit < length) {
      throw invalidFile(`dataspace: expected an axis of at most ${limit} items, received ${length}`);
    }
    maxShape.push(limit);
  }
  return { shape, maxShape };
}

/**
 * Returns the number of items of a shape; 0 for null.
 * @throws ZpublishError `invalid-metadata` if the number has more than 53 bits
 */
export function itemCount(shape: readonly number[] | null): number {
  if (shape === null || shape.includes(0)) return 0;
  const count = shape.reduce((product, length) => product * length, 1);
  if (count <= Number.MAX_SAFE_INTEGER) return count;
  throw invalidFile(`dataspace: expected less than 2^53 items, received the shape [${shape.join(", ")}]`);
}
