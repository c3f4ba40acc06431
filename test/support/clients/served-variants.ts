import { effort } from "../effort.js";
import type { FixtureArray, FixtureCodec, FixtureStore, Fixtures } from "./fixtures.js";

/**
 * The ways in which the fixture stores are served: as stored, recompressed, refiltered, rechunked. Each says what it
 * asks of every array, and which arrays have to be refused because they cannot be decoded as far as that needs.
 */
export interface Variant {
  readonly name: string;
  /** True where chunks change: padding of edge chunks is then the server's. */
  readonly rechunked: boolean;
  /** `encoding` and `variables` of the dataset's configuration. */
  config(store: FixtureStore): Readonly<Record<string, unknown>>;
  /** How much of the stored chain has to be undone. */
  readonly decodes: "nothing" | "compressor" | "everything";
  /** True where other chunks have to be encoded as the stored ones are. */
  readonly keepsCodecs?: boolean;
}

/** Codecs that are passed through but never decoded. */
const OPAQUE: ReadonlySet<string> = new Set([
  ...["bz2", "lzma", "astype", "packbits", "categorize", "pickle"],
  ...["vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2", "fletcher32", "jenkins_lookup3"],
]);

const NOT_OBJECT = (array: FixtureArray): boolean => array.dtype !== "|O";

type Decodes = Variant["decodes"];

const encoded = (name: string, decodes: Decodes, encoding?: object): Variant => ({
  ...{ name, decodes, rechunked: false },
  config: () => (encoding === undefined ? {} : { encoding }),
});

const perVariable = (name: string, encode: typeof refilter, keepsCodecs = false): Variant => ({
  ...{ name, keepsCodecs, decodes: "everything", rechunked: name.startsWith("rechunked") },
  config: (store) => ({ variables: perArray(store, NOT_OBJECT, encode) }),
});

const BLOSC = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };

export const VARIANTS: readonly Variant[] = [
  encoded("stored", "nothing"),
  encoded("zstd", "compressor", { compressor: { id: "zstd", level: 3 } }),
  encoded("blosc", "compressor", { compressor: BLOSC }),
  encoded("bare", "everything", { compressor: null, filters: null }),
  perVariable("refiltered", refilter),
  perVariable("rechunked", rechunkBare),
  perVariable("rechunked-packed", rechunkPacked),
  perVariable("rechunked-kept", rechunkKept, true),
];

/** Not among {@link VARIANTS}: below `zarr3/`, codecs and types of the registry. */
export const PORTABLE: Variant = {
  ...{ name: "portable", rechunked: false, decodes: "nothing" },
  config: () => ({ zarr3: { portable: true } }),
};

/** Codecs of the registry, and the filters that make bytes of objects. */
const REGISTERED: ReadonlySet<string> = new Set(["blosc", "gzip", "zstd", "vlen-utf8", "vlen-bytes"]);

/** Paths of arrays that are left out of a portable store, since they have no portable type or cannot be decoded. */
export function leftOutOfPortable({ arrays }: FixtureStore): string[] {
  return Object.entries(arrays).flatMap(([path, { dtype, compressor, filters = [], codecs = [] }]) => {
    const hasType =
      dtype === "|O"
        ? filters[0]?.id !== undefined
          ? REGISTERED.has(filters[0].id)
          : true
        : typeof dtype === "string" &&
          /^.([biuc][1248]|f[248]|c(8|16)|U[1-9]\d*|S[1-9]\d+|S[2-9]|[mM]8\[(D|h|m|s|ms|us|ns)\])$/.test(
            dtype,
          );
    const ids = [...filters.slice(dtype === "|O" ? 1 : 0), ...(compressor ? [compressor] : [])].map(
      ({ id }) => id,
    );
    const isKept =
      ids.every((id) => REGISTERED.has(id)) && codecs.every((name) => !name.startsWith("numcodecs."));
    const canBeDecoded = !ids.some((id) => OPAQUE.has(id));
    return hasType && (isKept || canBeDecoded) ? [] : [path];
  });
}

/** Picks variants by their names. */
export function variantsNamed(...names: readonly string[]): readonly Variant[] {
  return VARIANTS.filter(({ name }) => names.includes(name));
}

/**
 * Returns the variants in which a client reads a store: the first one, and as many of the others as the effort says. They take turns from
 * store to store, so that each of them has its share of the stores.
 * @param index Of the store, among those that the client reads.
 */
export function waysOf(index: number, variants: readonly Variant[]): readonly Variant[] {
  const [first, ...others] = variants;
  const count = effort(others.length);
  return variants.filter((each, at) => each === first || (at + index) % others.length < count);
}

/** Of one store in one variant: the dataset's id, and what the configuration file says of it. */
export function datasetId(store: string, variant: Variant): string {
  return `${store.replace(/\.zarr$/, "")}-${variant.name}`;
}

/** `datasets` of the configuration file. */
export function datasetsOf(
  fixtures: Fixtures,
  stores: readonly string[],
  variants: readonly Variant[],
): Record<string, unknown> {
  const datasets: Record<string, unknown> = {};
  for (const variant of variants) {
    for (const store of stores) {
      const facts = fixtures.stores[store] as FixtureStore;
      datasets[datasetId(store, variant)] = { location: fixtures.path(store), ...variant.config(facts) };
    }
  }
  return datasets;
}

/** Paths of the arrays that have to be refused. */
export function refusedBy(variant: Variant, store: FixtureStore): string[] {
  return Object.entries(store.arrays)
    .filter(([path, array]) => isTouched(variant, store, path) && !canBeServed(variant, array))
    .map(([path]) => path)
    .sort();
}

/** Whether a variant asks something of an array. */
export function isTouched(variant: Variant, store: FixtureStore, path: string): boolean {
  const { encoding, variables } = variant.config(store) as {
    encoding?: unknown;
    variables?: Record<string, unknown>;
  };
  return encoding !== undefined || variables?.[path] !== undefined;
}

function canBeServed(variant: Variant, { compressor, filters = [], dtype }: FixtureArray): boolean {
  // A type without an item size cannot be served without the filter that makes bytes of it.
  if (dtype === "|O" && variant.decodes === "everything") return false;
  if (variant.decodes !== "nothing" && compressor != null && OPAQUE.has(compressor.id)) return false;
  if (variant.decodes === "everything" && filters.some(({ id }) => OPAQUE.has(id))) return false;
  return !variant.keepsCodecs || (compressor?.cname !== "snappy" && !filters.some(losesValues));
}

/** Whether encoding could change a value, so that the filter is decoded but never applied. */
function losesValues({ id, dtype, astype }: FixtureCodec): boolean {
  if (id === "fixedscaleoffset") return true;
  if (id !== "delta") return false;
  return /f/.test(String(dtype)) || Number(String(astype).slice(2)) < Number(String(dtype).slice(2));
}

function perArray(
  store: FixtureStore,
  include: (array: FixtureArray) => boolean,
  encode: (array: FixtureArray, index: number) => unknown,
): Record<string, unknown> {
  const variables: Record<string, unknown> = {};
  Object.entries(store.arrays).forEach(([path, array], index) => {
    if (include(array)) variables[path] = encode(array, index);
  });
  return variables;
}

/** Delta where numbers have a type it knows, shuffle for all others, by turns with and without a compressor. */
function refilter({ dtype }: FixtureArray, index: number): unknown {
  const compressor = index % 2 === 0 ? { id: "zlib", level: 1 } : { id: "gzip", level: 1 };
  const type = typeof dtype === "string" ? dtype : "|V1";
  if (/^[<|][iu][1248]$/.test(type) && index % 4 < 2) {
    return { filters: [{ id: "delta", dtype: type, astype: type }], compressor };
  }
  return { filters: [{ id: "shuffle", elementsize: itemSizeOf(type) }], compressor };
}

function itemSizeOf(type: string): number {
  const match = /^[<>|]([a-zA-Z])(\d*)/.exec(type);
  const size = Number(match?.[2] || "8");
  return match?.[1] === "U" ? size * 4 : size;
}

/** Grids that divide neither the stored one nor the array. */
function rechunkBare({ shape }: FixtureArray, index: number): unknown {
  return { chunks: chunksFor(shape, index), compressor: null, filters: null };
}

/** Only the grid changes: filters and compressor stay as they are stored. */
function rechunkKept({ shape }: FixtureArray, index: number): unknown {
  return { chunks: chunksFor(shape, index + 2) };
}

function rechunkPacked({ shape }: FixtureArray, index: number): unknown {
  const compressors = [
    { id: "blosc", cname: "zstd", clevel: 3, shuffle: 2, blocksize: 0 },
    { id: "blosc", cname: "lz4hc", clevel: 5, shuffle: 1, blocksize: 0 },
    { id: "blosc", cname: "blosclz", clevel: 5, shuffle: 0, blocksize: 0 },
    { id: "blosc", cname: "zlib", clevel: 5, shuffle: 1, blocksize: 0 },
    { id: "lz4", acceleration: 1 },
    { id: "zstd", level: 1 },
  ];
  return {
    chunks: chunksFor(shape, index + 1),
    compressor: compressors[index % compressors.length],
    filters: null,
  };
}

function chunksFor(shape: readonly number[], index: number): number[] {
  return shape.map(
    (length, axis) =>
      [Math.ceil(length / 2) || 1, -1, Math.ceil(length / 3) + 1, length + 2][(index + axis) % 4] as number,
  );
}
