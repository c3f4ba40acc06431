import type { PartArray, PartDescription } from "./part-description.js";
import type { PartStored } from "./stored-form.js";

/** A part as it was described last. */
export interface KnownPart {
  /** As in `PartDescription`. */
  readonly name: string;
  /** As the finder told it when the part was described. */
  readonly version: string;
  /** `identity` of its tree when it was described: with another one it is another file by now. */
  readonly identity: string;
  readonly description: PartDescription;
}

/** A file that is no dataset, however often it is looked at. */
export interface BrokenPart {
  readonly name: string;
  readonly version: string;
  readonly reason: string;
}

/** State of the parts of one dataset. */
export interface KeptParts {
  readonly parts: readonly KnownPart[];
  readonly broken: readonly BrokenPart[];
}

/** Sorts parts, or files, by their names. */
export function sortedByName<T extends { readonly name: string }>(items: Iterable<T>): T[] {
  return [...items].sort((a, b) => (a.name < b.name ? -1 : 1));
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
