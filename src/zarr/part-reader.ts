import { type MaybePromise, mapInLots, whenDone } from "../event-loop/maybe-promise.js";
import {
  type ChunkPiece,
  type ChunkReader,
  combineStored,
  HIDDEN,
  type PartChunkReader,
  PIECED,
  versionOfPassed,
  versionOfPieces,
  versionsOf,
} from "./chunk-reader.js";

/** A stored chunk that is passed through as a chunk of the array that parts make. @typeParam A What its array is opened by. */
export interface PassedPiece<A> extends Pick<ChunkPiece, "part" | "coords"> {
  readonly array: A;
}

/** A piece whose array need not be open. @typeParam A What the array is opened by. */
export type ClosedPiece<A> = PassedPiece<A> & Omit<ChunkPiece, "reader">;

/** Finds the stored chunks that a chunk is made of. */
export interface FindPieces<A> {
  /** Returns the stored chunk that a chunk is, with all its bytes; undefined if it is made of pieces. */
  passed(chunkCoords: readonly number[]): PassedPiece<A> | undefined;
  /** Returns the pieces of a chunk, those of one stored array together, in order. */
  pieces(chunkCoords: readonly number[]): ClosedPiece<A>[];
}

/** Stored arrays that are looked up at a time. */
const CONCURRENCY = 16;

/** Creates the reader of chunks that are stored ones, or made of pieces of these. @param readerOf Opens a stored array. */
export function createPartChunkReader<A>(
  find: FindPieces<A>,
  readerOf: (array: A) => MaybePromise<ChunkReader>,
): PartChunkReader {
  return {
    version(coords, options) {
      const passed = find.passed(coords);
      if (passed !== undefined)
        return whenDone(readerOf(passed.array), (reader) =>
          whenDone(reader.version(passed.coords, options), (found) => ({
            ...found,
            token: found.token && versionOfPassed(passed, found.token),
          })),
        );
      const pieces = find.pieces(coords);
      const found = mapInLots(byLayout(pieces), CONCURRENCY, (alike) =>
        whenDone(readerOf(alike[0]!.array), (reader) =>
          versionsOf(
            reader,
            alike.map((piece) => piece.coords),
            options,
          ),
        ),
      );
      return whenDone(found, (versions) =>
        combineStored(versions.flat(), (tokens) => versionOfPieces(pieces, tokens)),
      );
    },
    read(coords, options) {
      const passed = find.passed(coords);
      if (passed === undefined)
        throw new Error("expected a chunk that is a stored one, received one of several pieces");
      return whenDone(
        whenDone(readerOf(passed.array), (reader) => reader.read(passed.coords, options)),
        (stored) => stored && { ...stored, version: versionOfPassed(passed, stored.version) },
      );
    },
    locate(coords) {
      const passed = find.passed(coords);
      if (passed === undefined) return HIDDEN;
      return whenDone(readerOf(passed.array), ({ locate }) =>
        locate === undefined ? HIDDEN : locate(passed.coords),
      );
    },
    parts: {
      variantOf: (coords) => (find.passed(coords) === undefined ? PIECED : 0),
      async piecesOf(coords) {
        const pieces = find.pieces(coords);
        const readers = await mapInLots(byLayout(pieces), CONCURRENCY, async (alike) => {
          const reader = await readerOf(alike[0]!.array);
          return alike.map(() => reader);
        });
        const flat = readers.flat();
        return pieces.map(({ array: _array, ...piece }, index) => ({ ...piece, reader: flat[index]! }));
      },
    },
  };
}

/** Divides pieces into those of one array, and of one layout, each. */
function byLayout<A>(pieces: readonly ClosedPiece<A>[]): ClosedPiece<A>[][] {
  const lots: ClosedPiece<A>[][] = [];
  for (const piece of pieces) {
    const last = lots.at(-1);
    if (last?.[0]?.layout === piece.layout) last.push(piece);
    else lots.push([piece]);
  }
  return lots;
}
