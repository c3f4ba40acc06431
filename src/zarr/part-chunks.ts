import { createHash } from "node:crypto";
import type { ChunkReader, ReadOptions } from "./chunk-reader.js";
import type { CodecStep } from "./codec-step.js";
import type { ItemConversion } from "./item-conversion.js";

/**
 * Chunks of several arrays that lie one behind the other along an axis, as in files of one day each. The grid is that of the joined array.
 * A chunk that is one chunk of one part has variant 0, and its bytes. All others have the variant {@link PIECED}: the server's thread
 * tells of which pieces they are made, and a worker puts these together. All fields but the functions are a name that no other array has.
 */
export interface PartChunks {
  readonly kind: "parts";
  /** Name of the joined dataset: differs between places, without credentials. */
  readonly store: string;
  /** Path of the array. */
  readonly path: string;
  /**
   * The joined axis, along which the array grows; -1 for an array without it, which is that of one part. Versions of chunks name the
   * parts that they are made of.
   */
  readonly axis: number;
  /** Returns the same reader at each call. */
  readonly openReader: () => PartChunkReader;
}

/** Variant of a chunk that is made of pieces. Its decoded form is raw items in the stored order of the joined array. */
export const PIECED = 1;

/** Reader of the chunks of joined arrays. */
export interface PartChunkReader extends ChunkReader {
  variantOf(chunkCoords: readonly number[]): number;
  /**
   * Returns the version of a chunk: `versionOfPassed` if its variant is 0, else `versionOfPieces`. `versionNow`, `read` and `readNow`
   * return the same.
   */
  version(chunkCoords: readonly number[], allocate?: ReadOptions["allocate"]): Promise<string | undefined>;
  /** Parts have versions and indexes of their own. */
  readonly has?: never;
  /** As {@link has}. */
  readonly placeOf?: never;
  /**
   * Returns the pieces of a chunk, each a stored chunk of a part; absent chunks of parts included. A chunk of variant 0 is one piece.
   * `read` is not called for any other.
   * @throws ZpublishError `source-unreadable`, naming the part
   */
  piecesOf(chunkCoords: readonly number[]): Promise<readonly ChunkPiece[]>;
}

/** A stored chunk of a part, and where its items lie in the joined array. */
export interface ChunkPiece {
  readonly layout: PieceLayout;
  /** Reader of the part's array. Workers read its chunks themselves if it says their places, or what opens it there. */
  readonly reader: ChunkReader;
  /** Coordinates in the grid of the part. */
  readonly coords: readonly number[];
  /**
   * Identity of the part's array, which its versions need to tell it from others: a hash of the part's name and of `layout`; short, of
   * `[0-9a-z]`.
   */
  readonly part: string;
  /** Place of the chunk's first item in the joined array; negative if its first items are not used. */
  readonly origin: readonly number[];
  /** First place along each axis that items of the part are copied to. */
  readonly begin: readonly number[];
  /** Place behind the last one, along each axis: what lies behind the part's end is padding. */
  readonly end: readonly number[];
}

/** Decoding and conversion of one part's stored chunks. Plain data, one object per array of a part. */
export interface PieceLayout {
  /** Name that tells the array of the part from all others. */
  readonly name: string;
  /** Part and array, for messages. */
  readonly title: string;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Bytes of an item of the part. */
  readonly itemSize: number;
  /** Steps that decode stored bytes, in that order. */
  readonly decode: readonly CodecStep[];
  /** Steps of stored chunks of the part that differ from its others, by variant: the first for 1. */
  readonly variants: readonly (readonly CodecStep[])[];
  /** Greatest length of a stored chunk; undefined if unknown. */
  readonly maxStoredByteLength: number | undefined;
  /** One item, in the part's type, for absent chunks; null for zero bytes. */
  readonly fillItem: Uint8Array | null;
  /** Whether absent chunks of the part mean another value than those of the joined array. Default false. */
  readonly hasOwnFill?: boolean;
  /** Change of items to those of the joined array; undefined if they are the same. */
  readonly conversion: ItemConversion | undefined;
}

/**
 * Returns the version of a chunk that is one chunk of one part.
 * @param version As the reader of the part returns it.
 */
export function versionOfPassed(
  { part, coords }: Pick<ChunkPiece, "part" | "coords">,
  version: string,
): string {
  return `${part}.${coords.join(".")}.${version}`;
}

/**
 * Combines the versions of the pieces of a chunk with their places, as `version` of the reader does.
 * @param versions In the order of the pieces; undefined for an absent one.
 * @returns Text of `[0-9a-z]`; undefined if all are absent, and mean the fill value of the joined array.
 */
export function versionOfPieces(
  pieces: readonly Omit<ChunkPiece, "reader">[],
  versions: readonly (string | undefined)[],
): string | undefined {
  if (pieces.every(({ layout }, index) => versions[index] === undefined && layout.hasOwnFill !== true))
    return undefined;
  const hash = createHash("sha256");
  for (const [index, { part, coords, origin, begin, end }] of pieces.entries())
    hash.update(`${[part, coords, origin, begin, end].join(".")} ${versions[index] ?? "-"}\n`);
  return hash.digest("hex").slice(0, 20);
}
