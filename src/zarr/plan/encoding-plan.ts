import type { ChunkSource } from "../chunk-source.js";
import type { CodecStep } from "../codec-step.js";
import type { ComputeStep } from "./compute-step.js";

/**
 * The plan by which the chunks of one served array are made from stored ones. It is made when the dataset opens, and is
 * plain data that crosses threads; a request only looks it up.
 *
 * - `passthrough`: the stored bytes are the served bytes.
 * - `recompress`: same grid, item order and type; the outer codecs differ. Needs bytes, not the type.
 * - `files`: whole stored files are the served chunks, such as shards, and are read by range. Nothing is known of their length.
 * - `rechunk`: items of a known size move between grids or axis orders. Needs the item size, not the type.
 */
export interface EncodingPlan {
  readonly kind: "passthrough" | "files" | "recompress" | "rechunk";
  /**
   * Hash of all fields below that decide the served bytes, and of the version of the codecs. The length of a joined array along its axis
   * is not among them if the versions of its chunks say it (`growth-of.ts`).
   */
  readonly id: string;
  readonly path: string;
  readonly shape: readonly number[];
  /** Bytes of an item; 0 for object types (never in a `rechunk`). */
  readonly itemSize: number;
  /** One item; null for zero bytes. An item of an object type is as vlen-utf8 and vlen-bytes write it. */
  readonly fillItem: Uint8Array | null;
  /** Whether a served chunk whose stored chunks are all absent is absent itself. Otherwise it is served filled. */
  readonly absentIsAbsent: boolean;
  /** Largest filled chunk, in bytes before it is encoded. */
  readonly maxFilledByteLength: number;
  readonly source: ChunkSource;
  /** Byte length of every stored chunk; null if it differs from chunk to chunk. */
  readonly storedByteLength: number | null;
  readonly stored: ChunkLayout;
  readonly served: ChunkLayout;
  /** Steps that decode stored bytes, in that order. Empty for passthrough. */
  readonly decode: readonly CodecStep[];
  /** Steps that encode after that, in order. Empty for passthrough. */
  readonly encode: readonly CodecStep[];
  /**
   * Steps from raw items to served bytes, for filled chunks in any kind of plan. For object types, the steps behind the
   * filter that makes bytes of their items.
   */
  readonly encodeAll: readonly CodecStep[];
  /** Steps of stored chunks whose codecs differ from the others'. Undefined if none do. */
  readonly variants?: VariantSteps;
  /** Work on the items of a gathered chunk before they are encoded: for coarser levels and pictures. Only in a `rechunk`. */
  readonly compute?: ComputeStep;
}

/** Steps of chunks whose codecs differ: they are decoded to raw items. */
export interface VariantSteps {
  /** By variant, the first for 1; in the order of decoding. */
  readonly decode: readonly (readonly CodecStep[])[];
  /** Steps from raw items to served bytes; empty for a `rechunk`, whose `encode` begins with raw items anyway. */
  readonly encode: readonly CodecStep[];
}

/** Layout of stored or served chunks in memory and in their grid. */
export interface ChunkLayout {
  readonly chunkShape: readonly number[];
  readonly gridShape: readonly number[];
  readonly axisOrder: readonly number[];
}
