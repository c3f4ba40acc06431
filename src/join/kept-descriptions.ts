import { createHash } from "node:crypto";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { rerunning } from "../event-loop/joined.js";
import { workThrough } from "../event-loop/work-through.js";
import { FORMATS } from "../formats/formats.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { BrokenPart, KeptParts, KnownPart, PartArray, PartDescription } from "./describe-part.js";

/** Changes whenever the description of an unchanged part would: raise the number if its readers or `describePart` differ. */
const STAMP = ["descriptions 2", ...FORMATS.map(({ id, revision }) => `${id} ${revision}`)].join("\n");
/** Parts, or pieces of them, to an item of the record, each of which is written and read without a pause. */
const BLOCK = 256;
/** Bytes of values to an item of the record. */
const VALUE_BLOCK_BYTES = 2 ** 20;

/** Descriptions of the parts of one dataset, kept between runs. Most files differ in little: equal pieces are one object. */
export interface KeptDescriptions {
  /** Returns a description whose pieces are the same objects as equal ones of other parts. */
  share(description: PartDescription): PartDescription;
  /** Reads what was kept; undefined if nothing was. Never throws. */
  read(): Promise<KeptParts | undefined>;
  /**
   * Keeps parts in place of those before, and forgets pieces that none of them has. If another call is under way, this one is done after
   * it, unless a later one replaces it. Never throws.
   */
  write(parts: KeptParts): Promise<void>;
  /** Waits until what is to be kept is written. */
  close(): Promise<void>;
}

/** What several parts have in common: a group, an array, or values of a coordinate. */
type Piece = PartDescription["groups"][number] | Omit<PartArray, "values"> | Uint8Array;

/** An item of the record. Parts name pieces of earlier items by their number. */
type RecordItem =
  | { readonly pieces: readonly Piece[] }
  | { readonly broken: readonly BrokenPart[] }
  | { readonly parts: readonly RecordedPart[] };

interface RecordedPart extends Omit<KnownPart, "description">, Pick<PartDescription, "refused"> {
  readonly groups: readonly number[];
  /** Numbers of each array, and of its values if there are any. */
  readonly arrays: readonly (readonly [array: number, values?: number])[];
}

/**
 * Creates the kept descriptions of a dataset.
 * @param kept Where they are kept. Default: they are only shared.
 * @param name Text that names the dataset, and how its parts are described.
 */
export function createKeptDescriptions(kept: KeptIndexes | undefined, name: string): KeptDescriptions {
  /** By the hash of their content. */
  const pieces = new Map<string, Piece>();
  let latest: KeptParts = { parts: [], broken: [] };

  function shared<T extends Piece>(piece: T): T {
    const hash = createHash("sha256")
      .update(piece instanceof Uint8Array ? "values\n" : "")
      .update(contentOf(piece))
      .digest()
      .toString("base64url", 0, 16);
    const known = pieces.get(hash);
    if (known !== undefined) return known as T;
    pieces.set(hash, piece);
    return piece;
  }

  function shareArray({ stored, dims, values }: PartArray): PartArray {
    const array = shared({ stored, dims });
    return values === undefined ? array : { ...array, values: shared(values) };
  }

  const writeLatest = rerunning(async () => {
    const numbers = new Map<unknown, number>();
    const items = itemsOf(latest, numbers);
    await (kept?.setItems(name, STAMP, items) ?? workThrough(items, 1, () => undefined));
    // A part that was described meanwhile shares less, and nothing else.
    for (const [hash, piece] of pieces) if (!numbers.has(identityOf(piece))) pieces.delete(hash);
  });

  return {
    share: ({ name, groups, arrays, refused }) => ({
      ...{ name, refused },
      groups: groups.map(shared),
      arrays: arrays.map(shareArray),
    }),
    async read() {
      const items = await kept?.getItems(name, [STAMP]);
      return items && runCooperatively(partsOf(items as readonly RecordItem[], shared));
    },
    write(parts) {
      latest = parts;
      return writeLatest();
    },
    close: async () => writeLatest.running,
  };
}

function contentOf(piece: Piece): string | Uint8Array {
  if (piece instanceof Uint8Array) return piece;
  if (!("stored" in piece)) return stringifyJson(["group", piece.path, piece.attrs]);
  const { dataType, fill, ...rest } = piece.stored;
  const item = fill.item && Buffer.from(fill.item).toString("hex");
  const content = { ...rest, dims: piece.dims, dtype: dataType.zarr, fill: { ...fill, item } };
  return stringifyJson(content as unknown as JsonObject);
}

/** Returns the object that all arrays with a piece have: an array with values is another object than its piece. */
function identityOf(piece: Piece): object {
  return "stored" in piece ? piece.stored : piece;
}

/**
 * Lists parts as items of a record, with every shared piece once.
 * @param numbers Takes the number of each piece, by its {@link identityOf}.
 */
function* itemsOf({ parts, broken }: KeptParts, numbers: Map<unknown, number>): Generator<RecordItem> {
  let pieces: Piece[] = [];
  let valueBytes = 0;

  function numberOf(piece: Piece): number {
    const known = numbers.get(identityOf(piece));
    if (known !== undefined) return known;
    pieces.push(piece);
    if (piece instanceof Uint8Array) valueBytes += piece.length;
    numbers.set(identityOf(piece), numbers.size);
    return numbers.size - 1;
  }

  function record({ name, version, identity, description }: KnownPart): RecordedPart {
    const { groups, arrays, refused } = description;
    return {
      ...{ name, version, identity, refused },
      groups: groups.map(numberOf),
      arrays: arrays.map(({ stored, dims, values }) => {
        const array = numberOf({ stored, dims });
        return values === undefined ? [array] : [array, numberOf(values)];
      }),
    };
  }

  for (let from = 0; from < parts.length; from += BLOCK) {
    const recorded = parts.slice(from, from + BLOCK).map(record);
    const count = valueBytes > VALUE_BLOCK_BYTES ? 1 : BLOCK;
    for (let at = 0; at < pieces.length; at += count) yield { pieces: pieces.slice(at, at + count) };
    pieces = [];
    valueBytes = 0;
    yield { parts: recorded };
  }
  for (let from = 0; from < broken.length; from += BLOCK) yield { broken: broken.slice(from, from + BLOCK) };
}

/** Makes parts of the items of a record. */
function* partsOf(items: readonly RecordItem[], shared: (piece: Piece) => Piece): CooperativeTask<KeptParts> {
  const pieces: Piece[] = [];
  const parts: KnownPart[] = [];
  const broken: BrokenPart[] = [];

  function partOf({ name, version, identity, refused, groups, arrays }: RecordedPart): KnownPart {
    const description = {
      ...{ name, refused },
      groups: groups.map((group) => pieces[group] as PartDescription["groups"][number]),
      arrays: arrays.map(([array, values]): PartArray => {
        const piece = pieces[array] as PartArray;
        return values === undefined ? piece : { ...piece, values: pieces[values] as Uint8Array };
      }),
    };
    return { name, version, identity, description };
  }

  for (const item of items) {
    yield;
    if ("pieces" in item) for (const piece of item.pieces) pieces.push(shared(piece));
    else if ("parts" in item) parts.push(...item.parts.map(partOf));
    else broken.push(...item.broken);
  }
  return { parts, broken };
}
