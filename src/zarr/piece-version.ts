import { createHash } from "node:crypto";
import type { ChunkPiece, PieceLayout } from "./part-chunks.js";

/** A piece of a chunk, and the version of the part's chunk as its reader returns it; undefined if it is absent. */
export type VersionedPiece = Omit<ChunkPiece, "reader" | "source" | "layout"> & {
  readonly layout: Pick<PieceLayout, "conversion" | "fillItem">;
  readonly version: string | undefined;
};

/**
 * Computes the identity of an array of a part: its name, and all that decides what its stored chunks decode to. Chunks of a Zarr store
 * keep their versions if only a document is rewritten.
 * @param name Name of the part, the same on every machine.
 */
export function partIdentity(name: string, layout: PieceLayout): string {
  const { name: _name, title: _title, maxStoredByteLength: _maximum, fillItem, ...rest } = layout;
  const text = JSON.stringify([name, rest, fillItem && Buffer.from(fillItem).toString("hex")]);
  return createHash("sha256").update(text).digest().toString("hex", 0, 6);
}

/**
 * Returns the version of a chunk of a joined array that is one chunk of one part.
 * @param version Version of the part's chunk as its reader returns it.
 */
export function passedVersion(
  { part, coords }: Pick<ChunkPiece, "part" | "coords">,
  version: string,
): string {
  return `${part}.${coords.join(".")}.${version}`;
}

/**
 * Returns the version of a chunk of a joined array that is made of pieces; undefined if it is absent, since nothing is stored behind any
 * piece. It is not absent if a part has another fill value than the joined array, or is converted.
 * @param pieces As `PartChunkReader.piecesOf` returns them, in that order.
 * @param fillItem Fill item of the joined array.
 */
export function pieceVersion(
  pieces: readonly VersionedPiece[],
  fillItem: Uint8Array | null,
): string | undefined {
  if (pieces.every(({ version, layout }) => version === undefined && hasFill(layout, fillItem)))
    return undefined;
  let text = "";
  for (const { part, coords, origin, begin, end, version } of pieces)
    text += `${part} ${coords} ${origin} ${begin} ${end} ${version ?? "-"}\n`;
  return createHash("sha256").update(text).digest().toString("hex", 0, 10);
}

/** Tells whether absent chunks of a part mean the same as those of the joined array. */
export function hasFill(
  { conversion, fillItem: own }: Pick<PieceLayout, "conversion" | "fillItem">,
  fillItem: Uint8Array | null,
): boolean {
  if (conversion !== undefined) return false;
  const longer = own ?? fillItem ?? [];
  return longer.every((_, index) => (own?.[index] ?? 0) === (fillItem?.[index] ?? 0));
}
