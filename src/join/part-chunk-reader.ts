import { ZpublishError } from "../errors.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import { elementCount } from "../model/data-tree.js";
import {
  type ChunkReader,
  type PartChunkReader,
  PIECED,
  presentOf,
  type VersionCheck,
  versionOfPassed,
  versionOfPieces,
  versionsOf,
} from "../zarr/chunk-reader.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { type ClosedPiece, createFindPieces, type PartedArray, type PassedChunk } from "./find-pieces.js";
import type { OpenParts } from "./open-parts.js";

/** Parts that are looked up at a time. */
const CONCURRENCY = 16;
/** Stored chunks, or parts with an index, that are looked up while the event loop waits. */
const MAX_CHECKED_NOW = 8;

/** Creates the reader of a joined array's chunks. Parts are opened when one of their chunks is first asked for. */
export function createPartChunkReader(
  array: PartedArray & { readonly stored: Pick<StoredArray, "dataType"> },
  open: OpenParts,
): PartChunkReader {
  const find = createFindPieces(array);

  const readerOf = ({ owner, path }: PassedChunk) => open.reader(owner, path);
  const readerNow = ({ owner, path }: PassedChunk) => open.readerNow(owner, path);

  async function version(...[coords, allocate]: Parameters<ChunkReader["version"]>) {
    const passed = find.passed(coords);
    if (passed !== undefined) {
      const found = await (await readerOf(passed)).version(passed.coords, allocate);
      return found === undefined ? undefined : versionOfPassed(passed, found);
    }
    const pieces = find.pieces(coords);
    const versions = await mapInLots(byPart(pieces), CONCURRENCY, async (ofPart) =>
      versionsOf(await readerOf(ofPart[0] as ClosedPiece), coordsOf(ofPart)),
    );
    return versionOfPieces(pieces, versions.flat());
  }

  /** Checks the versions of pieces at once; undefined if one of them has to wait. */
  function checkPieces(pieces: readonly ClosedPiece[], wasChecked?: boolean): VersionCheck | undefined {
    const checks: VersionCheck[] = [];
    const versions: (string | undefined)[] = [];
    for (const ofPart of byPart(pieces)) {
      const reader = readerNow(ofPart[0] as ClosedPiece);
      if (reader?.versionNow === undefined) return undefined;
      const present = presentOf(reader, coordsOf(ofPart));
      const looked = present === undefined ? coordsOf(ofPart) : [present.first];
      if (checks.length + looked.length > MAX_CHECKED_NOW) return undefined;
      const first = checks.length;
      for (const coords of looked) {
        const check = reader.versionNow(coords, wasChecked);
        if (check === undefined) return undefined;
        checks.push(check);
      }
      const found = checks.slice(first).map(({ version }) => version);
      versions.push(...(present?.are.map((isPresent) => (isPresent ? found[0] : undefined)) ?? found));
    }
    const found = versionOfPieces(pieces, versions);
    return found === undefined
      ? undefined
      : { version: found, isUnchanged: () => checks.every((check) => check.isUnchanged()) };
  }

  return {
    variantOf: (coords) => (find.passed(coords) === undefined ? PIECED : 0),
    version,
    versionNow(coords, wasChecked) {
      const passed = find.passed(coords);
      if (passed === undefined) return checkPieces(find.pieces(coords), wasChecked);
      const check = readerNow(passed)?.versionNow?.(passed.coords, wasChecked);
      return check && checkOfPassed(passed, check);
    },
    readNow(coords, options) {
      const passed = find.passed(coords);
      if (passed === undefined) return undefined;
      try {
        const stored = readerNow(passed)?.readNow?.(passed.coords, options);
        return stored && { ...stored, version: versionOfPassed(passed, stored.version) };
      } catch (error) {
        throw errorOfPassed(passed, error);
      }
    },
    async read(coords, options) {
      const passed = find.passed(coords);
      if (passed === undefined)
        throw new Error("expected a chunk of one part, received one of several pieces");
      try {
        const stored = await (await readerOf(passed)).read(passed.coords, options);
        return stored && { ...stored, version: versionOfPassed(passed, stored.version) };
      } catch (error) {
        throw errorOfPassed(passed, error);
      }
    },
    async measure(coords) {
      const passed = find.passed(coords);
      if (passed !== undefined) {
        const size = await (await readerOf(passed)).measure(passed.coords);
        return size && { ...size, version: versionOfPassed(passed, size.version) };
      }
      const { chunkShape, dataType } = array.stored;
      const found = await version(coords);
      return found === undefined
        ? undefined
        : { byteLength: elementCount(chunkShape) * dataType.itemSize, version: found };
    },
    async piecesOf(coords) {
      const pieces = find.pieces(coords);
      const readers = await mapInLots(byPart(pieces), CONCURRENCY, async (ofPart) => {
        const reader = await readerOf(ofPart[0] as ClosedPiece);
        return ofPart.map(() => reader);
      });
      const flat = readers.flat();
      return pieces.map(({ owner: _owner, path: _path, ...piece }, index) => ({
        ...piece,
        reader: flat[index] as ChunkReader,
      }));
    },
  };
}

/** Divides pieces into those of one array of one part each. */
function byPart(pieces: readonly ClosedPiece[]): ClosedPiece[][] {
  const parts: ClosedPiece[][] = [];
  for (const piece of pieces) {
    const last = parts.at(-1);
    if (last?.[0]?.layout === piece.layout) last.push(piece);
    else parts.push([piece]);
  }
  return parts;
}

function coordsOf(pieces: readonly ClosedPiece[]): (readonly number[])[] {
  return pieces.map(({ coords }) => coords);
}

/** A function of its own, so that what remembers the check does not retain the part. */
function checkOfPassed(passed: PassedChunk, check: VersionCheck): VersionCheck {
  return { version: versionOfPassed(passed, check.version), isUnchanged: () => check.isUnchanged() };
}

/** Gives the error of an overlong chunk the version that the chunk has here: it tells if the chunk was rewritten meanwhile. */
function errorOfPassed(passed: PassedChunk, error: unknown): unknown {
  if (!(error instanceof ZpublishError) || typeof error.details.version !== "string") return error;
  const version = versionOfPassed(passed, error.details.version);
  return new ZpublishError(error.code, error.message, {
    details: { ...error.details, version },
    cause: error.cause,
  });
}
