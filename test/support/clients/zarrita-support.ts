import type { FixtureArray } from "./fixtures.js";

/** The fields of a served `.zarray` that decide whether zarrita can read it. */
interface ServedDocument {
  readonly shape: readonly number[];
  readonly dtype: unknown;
  readonly fill_value: unknown;
  readonly compressor: { readonly id: string } | null;
  readonly filters:
    | readonly { readonly id: string; readonly dtype?: string; readonly astype?: string }[]
    | null;
}

const COMPRESSORS: ReadonlySet<string> = new Set(["blosc", "zstd", "gzip", "zlib", "lz4"]);
const FILTERS: ReadonlySet<string> = new Set([
  "shuffle",
  "delta",
  "bitround",
  "fixedscaleoffset",
  "vlen-utf8",
  "json2",
]);

/**
 * Whether zarrita 0.7 can read what is served, so that whatever it then gets wrong is ours.
 * @param hasFloat16 Browsers have had `Float16Array` for a while, Node 20 does not.
 */
export function zarritaCanRead(document: ServedDocument, array: FixtureArray, hasFloat16: boolean): boolean {
  const { shape, dtype, compressor, filters } = document;
  if (typeof dtype !== "string" || !/^([<>|]([biuSU]|f[48])|\|O)/.test(dtype)) {
    if (!(hasFloat16 && /^[<>]f2$/.test(String(dtype)))) return false;
  }
  if (compressor !== null && !COMPRESSORS.has(compressor.id)) return false;
  if (filters?.some(({ id, dtype, astype }) => !FILTERS.has(id) || (id === "delta" && astype !== dtype)))
    return false;
  // zarr-python 3.0 writes texts of fixed length with a filter, which only itself can read.
  if (/U/.test(dtype as string) && filters?.some(({ id }) => id === "vlen-utf8")) return false;
  // "Input contains an empty iterator."
  if (shape.includes(0)) return false;
  // It reads byte strings as UTF-8 and drops zero bytes inside them.
  if (/^\|S/.test(dtype as string) && array.expected.includes("types")) return false;
  // It parses metadata with JSON.parse, which rounds fill values beyond 2^53.
  const isWide = /^[<>][iu]8$/.test(dtype as string);
  return !(isWide && Math.abs(Number(document.fill_value)) > 2 ** 53);
}

/** Every `.zarray` of a served store, by path. */
export async function fetchArrayDocuments(storeUrl: string): Promise<ReadonlyMap<string, ServedDocument>> {
  const response = await fetch(`${storeUrl}/.zmetadata`);
  if (!response.ok) throw new Error(`${storeUrl}/.zmetadata answered ${response.status}`);
  const { metadata } = (await response.json()) as { metadata: Record<string, ServedDocument> };
  return new Map(
    Object.entries(metadata)
      .filter(([key]) => key.endsWith("/.zarray"))
      .map(([key, document]) => [key.slice(0, -"/.zarray".length), document]),
  );
}
