import { createHash } from "node:crypto";
import { createBoundedMap } from "../collections/bounded-map.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { rerunning } from "../event-loop/joined.js";
import { FORMATS } from "../formats/formats.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type {
  BrokenPart,
  KeptParts,
  KnownPart,
  PartArray,
  PartDescription,
  PartPlaces,
  StoreLayout,
} from "./describe-part.js";
import { memoryOfPlaces } from "./part-places.js";

/** Changes whenever the description of an unchanged part would: raise the number if its readers or `describePart` differ. */
const STAMP = ["descriptions 4", ...FORMATS.map(({ id, revision }) => `${id} ${revision}`)].join("\n");
/** Parts to an item of the record, each of which is written and read without a pause; fewer if their places take more than the bytes. */
const BLOCK = 256;
const BLOCK_BYTES = 2 ** 20;
/** Values of coordinates that are shared: to look for one number takes more than it saves. */
const MIN_SHARED_BYTES = 16;
/** Pieces that new parts may share. */
const MAX_PIECES = 10_000;
/** Bound of the places of chunks: those of 60,000 files of one array, or of three million chunks. Files beyond it are opened. */
const MAX_PLACES_BYTES = 64 * 2 ** 20;

/** Descriptions of the parts of one dataset, kept between runs. Most files differ in little: equal pieces are one object. */
export type KeptDescriptions = ReturnType<typeof createKeptDescriptions>;

/** What several parts have in common: a group, an array, values of a coordinate, or places in a store. */
type Piece = PartDescription["groups"][number] | Omit<PartArray, "values"> | Uint8Array | StoreLayout;

/** Creates the kept descriptions of a dataset. @param kept Where they are kept. Default: they are only shared. */
export function createKeptDescriptions(kept: KeptIndexes | undefined, name: string) {
  /** By the hash of their content. */
  const pieces = createBoundedMap<Piece>({ maxEntries: MAX_PIECES });
  /** Pieces that were hashed, and what they are shared as: parts of one item of the record share theirs already. */
  const hashed = new WeakMap<object, Piece>();
  let latest: KeptParts = { parts: [], broken: [] };
  /** Bytes of the places of the parts that were kept last, and of those described since. */
  let placesBytes = 0;

  function shared<T extends Piece>(piece: T): T {
    const identity = "stored" in piece ? piece.stored : piece;
    const known = hashed.get(identity) ?? find(piece);
    hashed.set(identity, known);
    return known as T;
  }

  function find(piece: Piece): Piece {
    const hash = createHash("sha256")
      .update(piece instanceof Uint8Array ? "values\n" : "")
      .update(contentOf(piece))
      .digest()
      .toString("base64url", 0, 16);
    const known = pieces.get(hash);
    if (known === undefined) pieces.set(hash, piece);
    return known ?? piece;
  }

  function shareArray({ stored, dims, values }: PartArray): PartArray {
    const array = shared({ stored, dims });
    if (values === undefined) return array;
    return { ...array, values: values.length < MIN_SHARED_BYTES ? values : shared(values) };
  }

  function share({ description, places, ...part }: KnownPart): KnownPart {
    const { name, groups, arrays, refused } = description;
    const shares = { name, refused, groups: groups.map(shared), arrays: arrays.map(shareArray) };
    return { ...part, description: shares, ...(places && { places: sharePlaces(places) }) };
  }

  function sharePlaces(places: PartPlaces): PartPlaces | undefined {
    const byteLength = memoryOfPlaces(places);
    if (placesBytes + byteLength > MAX_PLACES_BYTES) return undefined;
    placesBytes += byteLength;
    return places.kind === "file" ? places : { ...places, layout: shared(places.layout) };
  }

  function* partsOf(items: readonly unknown[]): CooperativeTask<KeptParts> {
    const parts: KnownPart[] = [];
    for (const part of items.slice(0, -1).flat() as KnownPart[]) {
      yield;
      parts.push(share(part));
    }
    return { parts, broken: items.at(-1) as BrokenPart[] };
  }

  const writeLatest = rerunning(async () => {
    await kept?.setItems(name, STAMP, [...blocksOf(latest.parts), latest.broken]);
  });

  return {
    /** Returns a part whose pieces are the same objects as equal ones of other parts, without its places if they are too many. */
    share,
    /** Reads what was kept; undefined if nothing was. Never throws. */
    async read(): Promise<KeptParts | undefined> {
      const items = await kept?.getItems(name, [STAMP]);
      return items && runCooperatively(partsOf(items));
    },
    /** Keeps parts in place of those before. Of calls that come while one is under way, the last is done after it. Never throws. */
    write(parts: KeptParts): Promise<void> {
      latest = parts;
      placesBytes = parts.parts.reduce((sum, { places }) => sum + memoryOfPlaces(places), 0);
      return writeLatest();
    },
    /** Waits until what is to be kept is written. */
    close: async () => writeLatest.running,
  };
}

function* blocksOf(parts: readonly KnownPart[]): Generator<readonly KnownPart[]> {
  let block: KnownPart[] = [];
  let byteLength = 0;
  for (const part of parts) {
    block.push(part);
    byteLength += memoryOfPlaces(part.places);
    if (block.length < BLOCK && byteLength < BLOCK_BYTES) continue;
    yield block;
    block = [];
    byteLength = 0;
  }
  yield block;
}

function contentOf(piece: Piece): string | Uint8Array {
  if (piece instanceof Uint8Array) return piece;
  if ("chunks" in piece) return JSON.stringify(piece);
  if (!("stored" in piece)) return stringifyJson(["group", piece.path, piece.attrs]);
  const { dataType, fill, ...rest } = piece.stored;
  const item = fill.item && Buffer.from(fill.item).toString("hex");
  const content = { ...rest, dims: piece.dims, dtype: dataType.zarr, fill: { ...fill, item } };
  return stringifyJson(content as unknown as JsonObject);
}
