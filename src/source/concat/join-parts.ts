import { ZpublishError } from "../../errors.js";
import type { JoinedTree } from "./joined-tree.js";
import type { PartDescription } from "./part-description.js";

/** How several parts become one dataset. */
export interface JoinOptions {
  /** `concat`: the parts lie one behind the other along a dimension that they have. `stack`: each is one step of a new dimension. */
  readonly kind: "concat" | "stack";
  readonly dimension: string;
  /** Of steps that come twice, those of the part that is last in order are served. Default: they are refused. */
  readonly overlap?: "last";
  /** Coordinate of the new dimension of a stack, one value per part. Default: it has none. */
  readonly coordinate?: readonly (string | number)[];
}

/**
 * Joins parts into one tree.
 * @throws ZpublishError `invalid-metadata`, naming two parts and what differs, if they cannot be one dataset
 */
export function joinParts(descriptions: readonly PartDescription[], options: JoinOptions): JoinedTree {
  throw new ZpublishError(
    "unsupported",
    `cannot join ${descriptions.length} parts along ${options.dimension}`,
  );
}
