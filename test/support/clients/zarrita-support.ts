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

/** The fields of a served `zarr.json` of an array that decide about a portable store. */
interface ArrayJson {
  readonly node_type: string;
  readonly shape: readonly number[];
  readonly data_type: unknown;
  readonly fill_value: unknown;
  readonly codecs: readonly CodecJson[];
}

/** A codec in a `zarr.json`. */
export interface CodecJson {
  readonly name: string;
  readonly configuration?: {
    readonly index_location?: string;
    readonly codecs?: readonly CodecJson[];
    readonly index_codecs?: readonly CodecJson[];
  };
}

/** Every `zarr.json` of an array of a served store of v3, by path. */
export async function fetchArrays(url: string): Promise<Map<string, ArrayJson>> {
  const root = (await (await fetch(`${url}/zarr.json`)).json()) as {
    consolidated_metadata: { metadata: Record<string, ArrayJson> };
  };
  const entries = Object.entries(root.consolidated_metadata.metadata);
  return new Map(entries.filter(([, { node_type }]) => node_type === "array"));
}

/** Whether zarrita 0.7 reads an array, so that whatever it then gets wrong is ours. */
export function isForZarrita({ shape, data_type, fill_value, codecs }: ArrayJson): boolean {
  if (typeof data_type !== "string" || !/^(bool|u?int\d+|float(32|64)|string)$/.test(data_type)) return false;
  // It knows neither shards within shards nor an index at the start, and applies two transposes in the wrong order.
  const names = namesOf(codecs);
  const countOf = (name: string) => names.filter((each) => each === name).length;
  if (countOf("sharding_indexed") > 1 || countOf("transpose") > 1) return false;
  if (codecs.some(({ configuration }) => configuration?.index_location === "start")) return false;
  // It rounds integers of metadata beyond 2^53.
  return !shape.includes(0) && !(/int64/.test(data_type) && Math.abs(Number(fill_value)) >= 2 ** 53);
}

/** Lists the codecs of a `zarr.json`, those within shards and of their index too. */
export function namesOf(codecs: readonly CodecJson[]): string[] {
  return codecs.flatMap(({ name, configuration: { codecs = [], index_codecs = [] } = {} }) => [
    name,
    ...namesOf([...codecs, ...index_codecs]),
  ]);
}
