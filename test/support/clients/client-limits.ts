import type { Generation } from "./client-generation.js";
import type { FixtureStore, Fixtures } from "./fixtures.js";
import { isTouched, refusedBy, type Variant } from "./served-variants.js";

/** What the clients of a generation cannot read, in place or over HTTP; `README.md` has it in words. */
export interface ClientLimits {
  /** Stores with an array that makes zarr-python refuse a group as a whole. */
  readonly unopenable: readonly string[];
  /** Arrays that zarr-python opens but cannot read, by store. */
  readonly unreadable: Readonly<Record<string, readonly string[]>>;
  /** Variables that xarray cannot hold or compare, by store. */
  readonly notForXarray: Readonly<Record<string, readonly string[]>>;
}

const COMPLEX = ["c64_be", "c64_le", "c128_be", "c128_le"];
const TEXTS = ["bytes_vlen", "text", "text_vlen"];

export const CLIENT_LIMITS: Readonly<Record<Generation, ClientLimits>> = {
  system: {
    unopenable: ["zarr3-checksums.zarr"],
    unreadable: { "zarr3-v2.zarr": TEXTS },
    notForXarray: {
      "types.zarr": ["V3", "record"],
      "zarr2-only.zarr": ["nested_record"],
      "v3-nested.zarr": ["struct"],
      "zarr3-v2.zarr": [...TEXTS, "record"],
    },
  },
  trixie: {
    unopenable: ["zarr2-only.zarr", "v3-nested.zarr"],
    unreadable: { "types.zarr": COMPLEX },
    notForXarray: {
      "types.zarr": ["V3", "record", ...COMPLEX],
      "zarr3-v2.zarr": ["record"],
      "objects.zarr": ["ragged"],
    },
  },
  forky: { unopenable: [], unreadable: {}, notForXarray: {} },
};

/** Codecs of v2 that Zarr v3 has no name for: arrays with one are left out of `…/zarr3/`. */
const WITHOUT_V3_NAME: ReadonlySet<string> = new Set([
  "categorize",
  "pickle",
  "vlen-array",
  "json2",
  "msgpack2",
]);

/** Codecs of numbers: v3 says the order of bytes behind them, so that it cannot apply them to big-endian numbers. */
const NUMERIC: ReadonlySet<string> = new Set(["delta", "fixedscaleoffset", "quantize", "bitround", "astype"]);

/** Stores that zarr-python of a generation opens below a prefix. */
export function storesFor(generation: Generation, prefix: Prefix, fixtures: Fixtures): string[] {
  return Object.keys(fixtures.stores).filter((store) => {
    if (prefix === "zarr") return !CLIENT_LIMITS[generation].unopenable.includes(store);
    // zarr-python 3.0 opens no group of v3 with a time, a structure, or a text of fixed length.
    return Object.values((fixtures.stores[store] as FixtureStore).arrays).every(
      ({ dtype }) => typeof dtype === "string" && /^.[biufcO]/.test(dtype),
    );
  });
}

/** Paths of the arrays that are not below a prefix: refused in this variant, or left out of v3. */
export function missingBelow(prefix: Prefix, variant: Variant, store: FixtureStore): string[] {
  const refused = refusedBy(variant, store);
  if (prefix === "zarr") return refused;
  const left = Object.entries(store.arrays).filter(([path, { dtype, filters = [] }]) => {
    const isReplaced = isTouched(variant, store, path) && variant.decodes === "everything";
    if (isReplaced && variant.keepsCodecs !== true) return false;
    return filters.some(
      ({ id }) => WITHOUT_V3_NAME.has(id) || (String(dtype).startsWith(">") && NUMERIC.has(id)),
    );
  });
  return [...new Set([...refused, ...left.map(([path]) => path)])];
}

/** Whether clients of Debian 13 wrote a store. Those of Debian 12 do not know all of its documents in place. */
export function isNewer({ writer }: FixtureStore): boolean {
  return /3$|2025/.test(writer);
}

/** A path below a dataset at which its Zarr store is served. */
export type Prefix = "zarr" | "zarr3";

/** Where clients of a generation read: those of Debian 12 know no Zarr v3. */
export function prefixesOf(generation: Generation): readonly Prefix[] {
  return generation === "trixie" ? ["zarr", "zarr3"] : ["zarr"];
}

/** The version of Zarr below a prefix. */
export function formatOf(prefix: Prefix): 2 | 3 {
  return prefix === "zarr" ? 2 : 3;
}

/** Tells whether xarray can open a store in place: Debian 12's knows no Zarr v3, and not all documents that Debian 13 writes. */
export function canOpenInPlace(generation: Generation, store: FixtureStore): boolean {
  return store.dims && (generation === "trixie" || (store.format === 2 && !isNewer(store)));
}

/** Returns how values are compared: decoded, as they are stored, or both. */
export function decodingsOf(store: FixtureStore, inPlace: boolean, prefix: Prefix): readonly boolean[] {
  if (inPlace) return [true, false];
  // Compared with true values, which are as they are stored; but what was a v3 array and is served as v2 says its mark.
  return store.format === 3 && !isNewer(store) && prefix === "zarr" ? [true, false] : [false];
}
