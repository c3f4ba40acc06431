import { createLimiter } from "../../collections/limiter.js";
import { createRecentMap } from "../../collections/recent-map.js";
import { createSingleFlight } from "../../collections/single-flight.js";
import { messageOf, ZpublishError } from "../../errors.js";
import type { ChunkReader, ChunkSource } from "../../zarr/chunk-source.js";
import { openChunkReader } from "../chunk-reader.js";
import type { Source } from "../source.js";
import type { KnownPart } from "./description-records.js";

/** Parts that are open at a time: their indexes take some kilobytes per array, and 13 bytes per chunk. */
const MAX_OPEN = 512;
/** Parts that are opened at a time. */
const CONCURRENCY = 16;

/** Parts of one dataset that were opened for their chunks. Errors of readers name the part; one that has changed is opened again. */
export interface OpenParts {
  /** Returns the reader of an array if its part is open. */
  readerNow(part: KnownPart, path: string): ChunkReader | undefined;
  /**
   * Returns the reader of an array, and opens its part first unless it is open.
   * @throws ZpublishError `source-changed` if the part is no longer the one that was described, `source-unreadable`
   */
  reader(part: KnownPart, path: string): Promise<ChunkReader>;
  /** Returns the chunks of an array. @throws as `reader` */
  chunks(part: KnownPart, path: string): Promise<ChunkSource>;
}

/** Options of {@link createOpenParts}. */
export interface OpenPartsOptions {
  /** Opens a part. */
  readonly openPart: (name: string) => Promise<Source>;
  /** Identity of the dataset: errors name it, so that the dataset is read again. */
  readonly identity: string;
  /** Called when a part turns out to be another one than was described. */
  readonly onChanged: (name: string) => void;
}

interface OpenPart {
  readonly part: KnownPart;
  readonly chunks: ReadonlyMap<string, ChunkSource>;
  readonly readers: Map<string, ChunkReader>;
}

/** Creates the open parts of a dataset; none is open yet. */
export function createOpenParts({ openPart, identity, onChanged }: OpenPartsOptions): OpenParts {
  const recent = createRecentMap<OpenPart>(MAX_OPEN);
  const openings = createSingleFlight<OpenPart>();
  const limiter = createLimiter({
    maxRunning: CONCURRENCY,
    maxPerKey: CONCURRENCY,
    maxWaiting: Number.POSITIVE_INFINITY,
  });

  function known(part: KnownPart): OpenPart | undefined {
    const found = recent.get(part.name);
    return found?.part === part ? found : undefined;
  }

  async function open(part: KnownPart): Promise<OpenPart> {
    try {
      // Not closed: it is the garbage collector that ends what requests may still read from.
      const tree = await (await openPart(part.name)).readTree();
      if (tree.identity !== part.identity) throw changed(part);
      const chunks = tree.groups.flatMap(({ arrays }) =>
        arrays.map((array) => [array.path, array.chunks] as const),
      );
      const opened: OpenPart = { part, chunks: new Map(chunks), readers: new Map() };
      recent.set(part.name, opened);
      return opened;
    } catch (error) {
      throw errorOf(part, error);
    }
  }

  async function openOnce(part: KnownPart): Promise<OpenPart> {
    const key = `${part.name}\n${part.identity}`;
    return known(part) ?? openings.run(key, () => limiter.run("", () => known(part) ?? open(part)));
  }

  function readerOf({ part, chunks, readers }: OpenPart, path: string): ChunkReader {
    const opened = readers.get(path);
    if (opened !== undefined) return opened;
    const source = chunks.get(path);
    if (source === undefined) throw errorOf(part, changed(part));
    const reader = withErrors(openChunkReader(source), (error) => errorOf(part, error));
    readers.set(path, reader);
    return reader;
  }

  function changed({ name }: KnownPart, cause?: unknown): ZpublishError {
    return new ZpublishError("source-changed", `'${name}' is no longer the file that was opened`, { cause });
  }

  function errorOf(part: KnownPart, error: unknown): unknown {
    if (!(error instanceof ZpublishError)) return error;
    const { name } = part;
    if (error.code === "source-changed") {
      recent.delete(name);
      onChanged(name);
      return new ZpublishError("source-changed", `part '${name}': ${error.message}`, {
        details: { ...error.details, staleIdentity: identity },
        cause: error,
      });
    }
    // It was a dataset when it was described.
    const isDamage = error.code === "invalid-metadata" || error.code === "unsupported";
    const code = isDamage ? "source-unreadable" : error.code;
    return new ZpublishError(code, `part '${name}': ${messageOf(error)}`, {
      details: error.details,
      cause: error,
    });
  }

  return {
    readerNow(part, path) {
      const opened = known(part);
      return opened && readerOf(opened, path);
    },
    reader: async (part, path) => readerOf(known(part) ?? (await openOnce(part)), path),
    async chunks(part, path) {
      const source = (await openOnce(part)).chunks.get(path);
      if (source !== undefined) return source;
      throw errorOf(part, changed(part));
    },
  };
}

/** Returns a reader whose errors are replaced. */
function withErrors(reader: ChunkReader, errorOf: (error: unknown) => unknown): ChunkReader {
  const { versionNow, readNow } = reader;

  async function within<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      throw errorOf(error);
    }
  }

  function now<A extends unknown[], T>(work: (...args: A) => T): (...args: A) => T {
    return (...args) => {
      try {
        return work(...args);
      } catch (error) {
        throw errorOf(error);
      }
    };
  }

  return {
    ...reader,
    version: (...args) => within(reader.version(...args)),
    read: (...args) => within(reader.read(...args)),
    measure: (...args) => within(reader.measure(...args)),
    ...(versionNow && { versionNow: now(versionNow) }),
    ...(readNow && { readNow: now(readNow) }),
  };
}
