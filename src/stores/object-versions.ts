import { createBoundedMap } from "../collections/bounded-map.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { ZpublishError } from "../errors.js";
import type {
  ByteStore,
  ObjectBytes,
  ObjectRange,
  ObjectStat,
  ObjectVersion,
  ReadObjectOptions,
} from "./byte-store.js";

/** Time for which an answer of a store is believed: `always` asks each time, `immutable` never again. */
export type Freshness = "always" | "immutable" | { readonly seconds: number };

/** Objects whose state is remembered, of one store. */
const MAX_KNOWN = 65_536;

/** State of an object as the store told it last. */
export interface KnownObject {
  /** Undefined if there is no such object. */
  readonly version: ObjectVersion | undefined;
  /** Length of the object; undefined if it is not known. */
  readonly byteLength: number | undefined;
}

/** A version, and when the store told it. */
interface Believed {
  readonly version: ObjectVersion | undefined;
  /** Milliseconds since process start. */
  checkedAtMs: number;
}

/**
 * Objects of one store and their versions, each believed for some time. The version of an unknown object is learned by the very
 * read that follows, whose bytes are kept for it: one request per cold chunk, and one per object and period for a warm one.
 */
export interface FreshObjects {
  readonly store: ByteStore;
  /** False if the store is asked before each answer. */
  readonly believes: boolean;
  /** Returns the state of an object if it is believed at present; else undefined. Does no I/O. */
  known(key: string): KnownObject | undefined;
  /**
   * Returns the state of an object, and asks the store if it is not known, or not believed any more.
   * @param range Bytes that are read next. Default: all. `none` if none are.
   * @throws ZpublishError `source-unreadable`
   */
  look(key: string, range?: ObjectRange | "none", options?: LookOptions): Promise<KnownObject>;
  /**
   * Reads bytes of an object in the version known. If it has changed, learns the new version and reads that.
   * @returns Undefined if there is no such object.
   * @throws as {@link ByteStore.read}
   */
  read(key: string, options?: ReadObjectOptions): Promise<ObjectBytes | undefined>;
  /** Remembers the state of an object that its store was asked for in another way. @param askedAtMs Since process start. */
  believe(key: string, stat: ObjectStat, askedAtMs: number): void;
  /** Forgets the state of an object that turned out to be corrupt: an answer may have lied about its length. */
  forget(key: string): void;
}

/** For the bytes that come with a version: their memory, and whether they are needed if it has not changed (see `VersionOptions`). */
type LookOptions = Pick<ReadObjectOptions, "allocate"> & {
  readonly isHeld?: ((token: string) => boolean) | undefined;
};

/** Bound of the bytes that were received with a version, and wait for the read that follows. */
const MAX_KEPT_BYTES = 32 * 2 ** 20;

/** Those of all stores: the bytes of a hundred datasets are no more than those of one. The oldest go, and are read again. */
const kept = createBoundedMap<ObjectBytes>({
  maxBytes: MAX_KEPT_BYTES,
  byteLengthOf: ({ bytes }) => bytes.length,
});
let created = 0;

const ABSENT: KnownObject = Object.freeze({ version: undefined, byteLength: undefined });

/** Creates the state of a store's objects, none of which is known yet. */
export function createFreshObjects(store: ByteStore, freshness: Freshness): FreshObjects {
  const { objectOf, believed, believes, stateOf, known, learn, forget } = createKnownVersions(
    store,
    freshness,
  );
  const prefix = `${++created}\n`;
  const looks = createSingleFlight<KnownObject>();
  /** True once an object was too long for its bytes to be kept: then versions are learned without bytes. */
  let isLarge = false;
  async function stat(key: string, beganMs: number): Promise<KnownObject> {
    const found = await store.stat(key);
    return learn(key, beganMs, found?.version, found?.byteLength);
  }

  /** Asks the store for the state of an object, and for the bytes that are read next unless they are many. */
  async function ask(
    key: string,
    range: ObjectRange | "none" | undefined,
    { allocate, isHeld = () => true }: LookOptions,
  ): Promise<KnownObject> {
    const beganMs = performance.now();
    const before = believed.get(objectOf(key) as string);
    const isBelieved = known(key) !== undefined;
    // Without its length, "unchanged" would not tell what is read of it.
    const canBeUnchanged = range === undefined || stateOf(key, before?.version).byteLength !== undefined;
    if (range === "none" || (isLarge && range === undefined)) return stat(key, beganMs);
    const options = { range, allocate, maxByteLength: MAX_KEPT_BYTES };
    try {
      const found =
        before?.version !== undefined && canBeUnchanged && !isBelieved && isHeld(before.version.token)
          ? await store.readIfChanged(key, before.version, options)
          : await store.read(key, isBelieved ? { ...options, version: before?.version } : options);
      if (found === "unchanged") {
        (before as Believed).checkedAtMs = beganMs;
        return stateOf(key, before?.version);
      }
      if (found !== undefined) kept.set(prefix + nameOf(key, range, found.objectByteLength), found);
      return learn(key, beganMs, found?.version, found?.objectByteLength);
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (error.code === "source-changed") forget(key);
      if (error.details.expected !== MAX_KEPT_BYTES) throw error;
      isLarge = true;
      return stat(key, beganMs);
    }
  }

  async function look(
    key: string,
    range?: ObjectRange | "none",
    options: LookOptions = {},
  ): Promise<KnownObject> {
    const state = known(key);
    if (state !== undefined && (state.version === undefined || state.byteLength !== undefined)) return state;
    const object = objectOf(key) as string;
    if (state === undefined && believed.get(object)?.version !== undefined) {
      // A known object is asked for once, whatever is read of it.
      const { version } = await looks.run(object, () => ask(key, range, options));
      const own = stateOf(key, version);
      // The answer may have been about another key of the object.
      if (version === undefined || own.byteLength !== undefined || range === undefined) return own;
    }
    return looks.run(`${key}\n${JSON.stringify(range)}`, () => ask(key, range, options));
  }

  async function readKnown(
    key: string,
    state: KnownObject,
    options: ReadObjectOptions,
  ): Promise<ObjectBytes | undefined> {
    if (state.version === undefined) return undefined;
    const found = kept.delete(prefix + nameOf(key, options.range, state.byteLength));
    if (found?.version.token === state.version.token) return found;
    return store.read(key, { ...options, version: state.version });
  }

  return {
    store,
    believes,
    known,
    look,
    forget,
    believe(key, { version, byteLength }, askedAtMs) {
      learn(key, askedAtMs, version, byteLength);
    },
    async read(key, options = {}) {
      const before = believed.get(objectOf(key) ?? "");
      const state =
        before?.version === undefined ? await look(key, options.range) : stateOf(key, before.version);
      try {
        const found = await readKnown(key, state, options);
        if (found !== undefined || state.version === undefined) return found;
      } catch (error) {
        if (!(error instanceof ZpublishError) || error.code !== "source-changed") throw error;
      }
      // It has changed, or is gone: another version may be read now.
      forget(key);
      return readKnown(key, await look(key, options.range), options);
    },
  };
}

function nameOf(key: string, range: ObjectRange | undefined, objectByteLength: number | undefined): string {
  const length = objectByteLength ?? 0;
  if (range === undefined) return `${key}\n0\n${length}`;
  if ("offset" in range) return `${key}\n${range.offset}\n${range.byteLength}`;
  const count = Math.min(range.last, length);
  return `${key}\n${length - count}\n${count}`;
}

/** What is known of objects, and since when. @param freshness How long it is believed. */
function createKnownVersions(store: ByteStore, freshness: Freshness) {
  /** By name of the object that has the bytes of a key. */
  const believed = createBoundedMap<Believed>({ maxEntries: MAX_KNOWN });
  /** By key, with the token of their version: many keys may lie in one object. */
  const lengths = createBoundedMap<{ readonly token: string; readonly byteLength: number }>({
    maxEntries: MAX_KNOWN,
  });
  const periodMs =
    freshness === "always"
      ? 0
      : freshness === "immutable"
        ? Number.POSITIVE_INFINITY
        : freshness.seconds * 1_000;

  /** Returns the object that has the bytes of a key; undefined if the store knows that there are none. */
  function objectOf(key: string): string | undefined {
    return store.objectOf === undefined ? key : store.objectOf(key);
  }

  function stateOf(key: string, version: ObjectVersion | undefined): KnownObject {
    if (version === undefined) return ABSENT;
    const length = lengths.get(key);
    return { version, byteLength: length?.token === version.token ? length.byteLength : undefined };
  }

  function known(key: string): KnownObject | undefined {
    const object = objectOf(key);
    if (object === undefined) return ABSENT;
    const found = believed.get(object);
    const isFresh = found !== undefined && performance.now() - found.checkedAtMs < periodMs;
    return isFresh ? stateOf(key, found.version) : undefined;
  }

  function learn(
    key: string,
    checkedAtMs: number,
    version: ObjectVersion | undefined,
    byteLength: number | undefined,
  ): KnownObject {
    if (version !== undefined && byteLength !== undefined)
      lengths.set(key, { token: version.token, byteLength });
    const object = objectOf(key) as string;
    // A key that is absent tells nothing about an object that has other keys, too.
    if (version !== undefined || object === key) believed.set(object, { version, checkedAtMs });
    return stateOf(key, version);
  }

  function forget(key: string): void {
    believed.delete(objectOf(key) ?? "");
  }

  return { objectOf, believed, believes: periodMs > 0, stateOf, known, learn, forget };
}
