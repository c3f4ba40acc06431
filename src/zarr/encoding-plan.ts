import type { ChunkSource } from "../source/chunk-source.js";
import type { CodecSpec } from "./codec-spec.js";

/**
 * How the chunks of one served array are made from stored ones: settled when the dataset opens, plain data that
 * crosses threads. A request only looks up.
 *
 * - `passthrough`: the stored bytes are the served bytes.
 * - `recompress`: same grid, item order and type; the outer codecs differ. Needs bytes, not the type.
 * - `rechunk`: items of a known size move between grids or axis orders. Needs the item size, not the type.
 */
export interface EncodingPlan {
  readonly kind: "passthrough" | "recompress" | "rechunk";
  /** Hash of everything below that decides the served bytes, and of the codec implementation version. */
  readonly id: string;
  readonly path: string;
  readonly shape: readonly number[];
  /** Bytes of an item; 0 for object types (never in a `rechunk`). */
  readonly itemSize: number;
  /** One item; null: zero bytes. Of object types, an item as vlen-utf8 and vlen-bytes write it. */
  readonly fillItem: Uint8Array | null;
  /** True: an absent stored chunk (all of them, in a rechunk) is an absent served chunk. False: it is served filled. */
  readonly absentIsAbsent: boolean;
  /** Largest chunk, before it is encoded, that is made up because nothing is stored behind it. */
  readonly maxFilledByteLength: number;
  readonly source: ChunkSource;
  /** Bytes of every stored chunk, where its codecs tell without looking at one; null: they do not. */
  readonly storedByteLength: number | null;
  readonly stored: ChunkLayout;
  readonly served: ChunkLayout;
  /** In the order they are applied to stored bytes. Empty for passthrough. */
  readonly decode: readonly CodecStep[];
  /** In the order they are applied after that. Empty for passthrough. */
  readonly encode: readonly CodecStep[];
  /**
   * The whole chain from raw items to served bytes: what a filled chunk goes through, in any kind of plan. Of object
   * types, what comes behind the filter that makes bytes of their items.
   */
  readonly encodeAll: readonly CodecStep[];
}

/** How one kind of chunk lies in memory and in its grid. */
export interface ChunkLayout {
  readonly chunkShape: readonly number[];
  readonly gridShape: readonly number[];
  readonly axisOrder: readonly number[];
}

/** One codec with what the plan knows about the bytes it works on. Plain data: no lossless numbers, no big integers. */
export interface CodecStep {
  readonly codec: CodecSpec;
  /** Bytes on the decoded side, where the plan knows: input and output are checked against it. Null: unknown. */
  readonly decodedByteLength: number | null;
  /** `decodedByteLength` where it is known, else a limit: nothing larger is ever allocated for the decoded side. */
  readonly maxDecodedByteLength: number;
  /** Item size on the decoded side, for codecs that care (Blosc's typesize, shuffle); 1 where unknown. */
  readonly itemSize: number;
}
