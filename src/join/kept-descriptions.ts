import { createHash } from "node:crypto";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { FORMATS } from "../formats/formats.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { BrokenPart, KeptParts, KnownPart, PartArray, PartDescription } from "./describe-part.js";
import type { PartStored } from "./item-forms.js";

/** Changes whenever the description of an unchanged part would: raise the number if its readers or `describePart` differ. */
const STAMP = ["descriptions 1", ...FORMATS.map(({ id, revision }) => `${id} ${revision}`)].join("\n");

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

/**
 * Creates the kept descriptions of a dataset.
 * @param kept Where they are kept. Default: they are only shared.
 * @param name Text that names the dataset, and how its parts are described.
 */
export function createKeptDescriptions(kept: KeptIndexes | undefined, name: string): KeptDescriptions {
  const pieces = new Map<string, SharedPiece>();
  /** Keys are groups, values, and the `stored` of arrays. */
  const hashes = new WeakMap<object, string>();

  function remember(hash: string, piece: SharedPiece): void {
    pieces.set(hash, piece);
    hashes.set("stored" in piece ? piece.stored : piece, hash);
  }

  function shared<T extends SharedPiece>(kind: string, content: string | Uint8Array, piece: T): T {
    const hash = createHash("sha256")
      .update(`${kind}\n`)
      .update(content)
      .digest()
      .toString("base64url", 0, 16);
    const known = pieces.get(hash);
    if (known !== undefined) return known as T;
    remember(hash, piece);
    return piece;
  }

  function shareArray({ stored, dims, values }: PartArray): PartArray {
    const { dataType, fill, ...rest } = stored;
    const item = fill.item && Buffer.from(fill.item).toString("hex");
    const content = { ...rest, dims, dtype: dataType.zarr, fill: { ...fill, item } };
    const array = shared("array", stringifyJson(content as unknown as JsonObject), { stored, dims });
    return values === undefined ? array : { ...array, values: shared("values", values, values) };
  }

  let next: KeptParts | undefined;
  let writing: Promise<void> | undefined;

  async function writeAll(): Promise<void> {
    for (let parts = next; parts !== undefined; parts = next) {
      next = undefined;
      const used = new Set<string>();
      const items = itemsOfParts(parts, (piece) => {
        const hash = hashes.get(piece) as string;
        used.add(hash);
        return hash;
      });
      await (kept?.setItems(name, STAMP, items) ?? workThrough(items, 1, () => undefined));
      // A part that was described meanwhile shares less, and nothing else.
      for (const hash of pieces.keys()) if (!used.has(hash)) pieces.delete(hash);
    }
    // Not in a later microtask: parts that are given before it would not be written.
    writing = undefined;
  }

  return {
    share: ({ name, groups, arrays, refused }) => ({
      name,
      groups: groups.map((group) => shared("group", stringifyJson([group.path, group.attrs]), group)),
      arrays: arrays.map(shareArray),
      refused,
    }),
    async read() {
      const items = await kept?.getItems(name, [STAMP]);
      return items && runCooperatively(partsOfItems(items, remember));
    },
    write(parts) {
      next = parts;
      writing ??= writeAll();
      return writing;
    },
    close: async () => writing,
  };
}

/** A group without its arrays. */
export type PartGroup = PartDescription["groups"][number];

/** A group or array that several parts have in common, or values. */
export type SharedPiece = PartGroup | Omit<PartArray, "values"> | Uint8Array;

/** Finds the text under which a piece is shared; for an array, by its `stored`. */
export type HashOf = (piece: PartGroup | PartStored | Uint8Array) => string;

/** Pieces to an item of the record, each of which is written and read without a pause. */
const BLOCK = 256;
/** Bytes of values to an item of the record. */
const VALUE_BLOCK_BYTES = 2 ** 20;

interface PieceBlock {
  readonly kind: "pieces";
  readonly pieces: readonly (readonly [hash: string, piece: SharedPiece])[];
}

interface PartBlock {
  readonly kind: "parts";
  readonly parts: readonly (Omit<KnownPart, "description"> & Pick<PartDescription, "refused">)[];
  /** References of each part: number of groups, their pieces, number of arrays, and of each its piece and its values, or {@link NO_VALUES}. */
  readonly references: Uint32Array;
}

interface BrokenBlock {
  readonly kind: "broken";
  readonly broken: readonly BrokenPart[];
}

const NO_VALUES = 2 ** 32 - 1;

/** Lists parts as items of a record, with every shared piece once. */
export function* itemsOfParts(
  { parts, broken }: KeptParts,
  hashOf: HashOf,
): Generator<PieceBlock | PartBlock | BrokenBlock> {
  const numbers = new Map<unknown, number>();
  let pieces: [string, SharedPiece][] = [];
  let valueBytes = 0;

  function numberOf(key: PartGroup | PartStored | Uint8Array, piece: SharedPiece): number {
    const known = numbers.get(key);
    if (known !== undefined) return known;
    const number = numbers.size;
    numbers.set(key, number);
    pieces.push([hashOf(key), piece]);
    if (piece instanceof Uint8Array) valueBytes += piece.length;
    return number;
  }

  function referencesOf({ groups, arrays }: PartDescription): number[] {
    return [
      groups.length,
      ...groups.map((group) => numberOf(group, group)),
      arrays.length,
      ...arrays.flatMap(({ stored, dims, values }) => [
        numberOf(stored, { stored, dims }),
        values === undefined ? NO_VALUES : numberOf(values, values),
      ]),
    ];
  }

  for (let from = 0; from < parts.length; from += BLOCK) {
    const references: number[] = [];
    const block = parts.slice(from, from + BLOCK).map(({ description, name, version, identity }) => {
      references.push(...referencesOf(description));
      return { name, version, identity, refused: description.refused };
    });
    while (pieces.length > 0) {
      const count = valueBytes > VALUE_BLOCK_BYTES ? 1 : BLOCK;
      yield { kind: "pieces", pieces: pieces.slice(0, count) };
      pieces = pieces.slice(count);
    }
    valueBytes = 0;
    yield { kind: "parts", parts: block, references: Uint32Array.from(references) };
  }
  for (let from = 0; from < broken.length; from += BLOCK)
    yield { kind: "broken", broken: broken.slice(from, from + BLOCK) };
}

/**
 * Makes parts of the items of a record.
 * @param onPiece Called with each shared piece, and its hash.
 */
export function* partsOfItems(
  items: readonly unknown[],
  onPiece: (hash: string, piece: SharedPiece) => void,
): Generator<undefined, KeptParts, undefined> {
  const pieces: SharedPiece[] = [];
  const parts: KnownPart[] = [];
  const broken: BrokenPart[] = [];
  for (const item of items as readonly (PieceBlock | PartBlock | BrokenBlock)[]) {
    yield;
    if (item.kind === "broken") broken.push(...item.broken);
    else if (item.kind === "pieces") {
      for (const [hash, piece] of item.pieces) {
        pieces.push(piece);
        onPiece(hash, piece);
      }
    } else {
      let at = 0;
      const next = () => item.references[at++] as number;
      for (const { name, version, identity, refused } of item.parts) {
        const groups = Array.from({ length: next() }, () => pieces[next()] as PartGroup);
        const arrays = Array.from({ length: next() }, (): PartArray => {
          const array = pieces[next()] as PartArray;
          const values = next();
          return values === NO_VALUES ? array : { ...array, values: pieces[values] as Uint8Array };
        });
        parts.push({ name, version, identity, description: { name, groups, arrays, refused } });
      }
    }
  }
  return { parts, broken };
}
