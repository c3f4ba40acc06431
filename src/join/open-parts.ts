import { createBoundedMap } from "../collections/bounded-map.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { isDamage, messageOf, ZpublishError } from "../errors.js";
import { type MaybePromise, whenDone, withErrorsOf } from "../event-loop/maybe-promise.js";
import { elementCount, gridShapeOf } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import type { ChunkReader } from "../zarr/chunk-reader.js";
import type { Source, StoredTree } from "../zarr/stored-tree.js";
import type { KnownPart } from "./describe-part.js";
import type { OpenPlaced } from "./part-places.js";

/** Bound of the memory of open parts: those of a year of hourly files, if their indexes are small. */
const MAX_BYTES = 128 * 2 ** 20;
/** Estimate for an array of an open part. */
const ARRAY_BYTES = 1_024;
/** Estimate for each array that is read by its places. */
const PLACED_BYTES = 4_096;
/** Place of a chunk in the index of a file. */
const PLACE_BYTES = 13;
/** Parts that are opened at a time. */
const CONCURRENCY = 16;

/** Parts of one dataset that were opened for their chunks. Errors of readers name the part; one that has changed is opened again. */
export interface OpenParts {
  /**
   * Returns the reader of an array: at once if its part is open, else opens that first.
   * @throws ZpublishError `source-changed` if the part is no longer the one that was described, `source-unreadable`
   */
  reader(part: KnownPart, path: string): MaybePromise<ChunkReader>;
}

/** Options of {@link createOpenParts}. */
interface OpenPartsOptions {
  /** Opens a part. */
  readonly openPart: (name: string) => Promise<Source>;
  /** Opens the chunks of a part by their places; undefined if the part has to be opened. Default: it always has. */
  readonly openPlaced?: ((part: KnownPart) => MaybePromise<OpenPlaced | undefined>) | undefined;
  /** Identity of the dataset: errors name it, so that the dataset is read again. */
  readonly identity: string;
  /** Called when a part turns out to be another one than was described. */
  readonly onChanged: (name: string) => void;
}

interface OpenPart {
  readonly part: KnownPart;
  /** Opens the reader of an array; undefined if it is not there. */
  readonly open: OpenPlaced;
  readonly readers: Map<string, ChunkReader>;
  /** Whether all of its arrays are there; else those that have places. */
  readonly isWhole: boolean;
  /** Estimate of its memory. */
  readonly byteLength: number;
}

/** Creates the open parts of a dataset; none is open yet. */
export function createOpenParts(options: OpenPartsOptions): OpenParts {
  const { openPart, openPlaced, identity, onChanged } = options;
  const opened = createBoundedMap<OpenPart>({
    maxBytes: MAX_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
  });
  const openings = createSingleFlight<OpenPart>();
  const limiter = createLimiter({
    maxRunning: CONCURRENCY,
    maxPerKey: CONCURRENCY,
    maxWaiting: Number.POSITIVE_INFINITY,
  });

  function known(part: KnownPart): OpenPart | undefined {
    const found = opened.get(part.name);
    return found?.part === part ? found : undefined;
  }

  function add(part: KnownPart, open: OpenPlaced, isWhole: boolean, byteLength: number): OpenPart {
    const added = { part, open, readers: new Map(), isWhole, byteLength };
    opened.set(part.name, added);
    return added;
  }

  function openPlaces(part: KnownPart): MaybePromise<OpenPart | undefined> {
    return whenDone(openPlaced?.(part), (open) => open && add(part, open, false, PLACED_BYTES));
  }

  async function openWhole(part: KnownPart): Promise<OpenPart> {
    try {
      // It is not closed, since requests may read from it for long: sources hold nothing but memory.
      const tree = await (await openPart(part.name)).readTree();
      if (tree.identity !== part.identity) throw changed(part);
      const chunks = new Map(
        tree.groups.flatMap(({ arrays }) => arrays.map((array) => [array.path, array.chunks])),
      );
      const openArray: OpenPlaced = (path) => {
        const source = chunks.get(path);
        return source && openChunkReader(source);
      };
      // A part that is larger than the bound stays until another one is opened.
      return add(part, openArray, true, Math.min(memoryOf(tree), MAX_BYTES));
    } catch (error) {
      throw errorOf(part, error);
    }
  }

  async function openOnce(part: KnownPart): Promise<OpenPart> {
    const key = `${part.name}\n${part.identity}`;
    const knownWhole = () => (known(part)?.isWhole ? known(part) : undefined);
    return knownWhole() ?? openings.run(key, () => limiter.run("", () => knownWhole() ?? openWhole(part)));
  }

  function readerOf(opening: OpenPart, path: string): MaybePromise<ChunkReader> {
    const { part, open, isWhole, readers } = opening;
    const before = readers.get(path);
    if (before !== undefined) return before;
    const found = open(path);
    if (found === undefined && isWhole) throw errorOf(part, changed(part));
    if (found === undefined) return openOnce(part).then((whole) => readerOf(whole, path));
    const reader = withErrors(found, (error) => errorOf(part, error));
    readers.set(path, reader);
    if (!isWhole) opened.set(part.name, { ...opening, byteLength: readers.size * PLACED_BYTES });
    return reader;
  }

  function changed({ identity: staleIdentity }: KnownPart): ZpublishError {
    const details = { staleIdentity };
    return new ZpublishError("source-changed", "it is no longer the file that was described", { details });
  }

  function errorOf(part: KnownPart, error: unknown): unknown {
    if (!(error instanceof ZpublishError)) return error;
    const { name } = part;
    // Without an identity it was a chunk that changed, which is read again.
    if (error.code === "source-changed" && error.details.staleIdentity !== undefined) {
      opened.delete(name);
      onChanged(name);
      return new ZpublishError("source-changed", `part '${name}': ${error.message}`, {
        details: { ...error.details, staleIdentity: identity },
        cause: error,
      });
    }
    // It was a dataset when it was described.
    const code = isDamage(error) ? "source-unreadable" : error.code;
    return new ZpublishError(code, `part '${name}': ${messageOf(error)}`, {
      details: error.details,
      cause: error,
    });
  }

  return {
    reader: (part, path) =>
      whenDone(known(part) ?? openPlaces(part), (found) =>
        whenDone(found ?? openOnce(part), (opened) => readerOf(opened, path)),
      ),
  };
}

/** Estimates the memory of an open part. */
function memoryOf({ groups }: StoredTree): number {
  const arrays = groups.flatMap((group) => group.arrays);
  const indexed = arrays.filter(({ chunks }) => chunks.kind === "ranges" && chunks.form === "ranges");
  const places = indexed.map(({ shape, chunkShape }) => elementCount(gridShapeOf(shape, chunkShape)));
  return places.reduce((sum, count) => sum + count * PLACE_BYTES, arrays.length * ARRAY_BYTES);
}

/** Returns a reader whose errors are replaced. */
function withErrors(reader: ChunkReader, errorOf: (error: unknown) => unknown): ChunkReader {
  return {
    ...reader,
    version: (...args) => withErrorsOf(() => reader.version(...args), errorOf),
    read: (...args) => withErrorsOf(() => reader.read(...args), errorOf),
    ...(reader.locate && { locate: (coords) => withErrorsOf(() => reader.locate?.(coords), errorOf) }),
  };
}
