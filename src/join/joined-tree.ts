import type { JsonObject } from "../json/json-value.js";
import type { ItemConversion } from "../zarr/codec-step.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { Refusal } from "../zarr/stored-tree.js";

/** Several parts as one tree, before anything is known of the places of their chunks. Plain data. */
export interface JoinedTree {
  /** Indices of the parts in the order in which they lie along the joined dimension: all of them, also those without steps. */
  readonly order: readonly number[];
  /**
   * Steps along the joined dimension, one run of steps of a part behind the other without gaps. A part has no run if it has no steps, or
   * if others have all of them. It has several runs if others have steps in its middle.
   */
  readonly steps: readonly PartSteps[];
  readonly groups: readonly JoinedGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
}

/** Neighbouring steps of one part along the joined dimension. */
export interface PartSteps {
  /** Index of the part in the list of descriptions. */
  readonly part: number;
  /** First step in the joined dataset. */
  readonly start: number;
  /** Number of steps of the joined dataset. */
  readonly length: number;
  /** First step of the part that is used: above 0 if another part has the steps before, or they come twice. */
  readonly from: number;
}

/** A group of a {@link JoinedTree}. */
export interface JoinedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly arrays: readonly JoinedArray[];
}

/** An array of a {@link JoinedTree}: its shape, type and attributes as they are served. */
export type JoinedArray = {
  readonly stored: Omit<StoredArray, "chunks">;
} & (
  | {
      /** A coordinate of all parts, which is served from memory. */
      readonly kind: "values";
      /** Items in C order, in the type of `stored`. */
      readonly values: Uint8Array;
    }
  | {
      /** An array without the joined dimension: that of one part, as it is. */
      readonly kind: "part";
      readonly part: number;
    }
  | {
      /** An array along the joined dimension. `stored` has the grid of chunks as it is served if nothing else is asked. */
      readonly kind: "joined";
      /** The joined axis. */
      readonly axis: number;
      /** In order, without gaps: one per run of steps of a part. */
      readonly spans: readonly PartSpan[];
    }
);

/** A run of steps of one part in a joined array. */
export interface PartSpan extends PartSteps {
  /** Path of the array in the part. */
  readonly path: string;
  /** Whether a chunk of the joined grid that is one chunk of the part may be passed through: type, fill, order, codecs and chunk shape are equal. */
  readonly isPassed: boolean;
  /** Change of the part's items to those of the joined array. Default: they are the same. */
  readonly conversion?: ItemConversion;
}
