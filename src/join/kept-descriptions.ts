import { createHash } from "node:crypto";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { FORMATS } from "../formats/formats.js";
import type { KeptIndexes } from "../formats/kept-indexes.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { itemsOfParts, type KeptParts, partsOfItems, type SharedPiece } from "./description-records.js";
import type { PartArray, PartDescription } from "./part-description.js";

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
