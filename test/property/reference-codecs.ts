import { promisify } from "node:util";
import { deflate, gunzip, gzip, inflate } from "node:zlib";
import Blosc from "numcodecs/blosc";
import LZ4 from "numcodecs/lz4";
import Zstd from "numcodecs/zstd";

/** Codecs as clients have them, written without the server's: what it encodes must be readable by others. */

export interface ChainSpec {
  readonly compressor: "none" | "zlib" | "gzip" | "zstd" | "lz4" | "blosc";
  readonly shuffled: boolean;
}

interface Compressor {
  readonly config: { readonly id: string; readonly [option: string]: unknown } | null;
  encode(bytes: Uint8Array): Promise<Uint8Array>;
  decode(bytes: Uint8Array): Promise<Uint8Array>;
}

const zstd = Zstd.fromConfig({ level: 1 });
const lz4 = LZ4.fromConfig({ acceleration: 1 });
const blosc = Blosc.fromConfig({ cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 });

const COMPRESSORS: Readonly<Record<ChainSpec["compressor"], Compressor>> = {
  none: { config: null, encode: async (bytes) => bytes, decode: async (bytes) => bytes },
  zlib: { config: { id: "zlib", level: 1 }, encode: promisify(deflate), decode: promisify(inflate) },
  gzip: { config: { id: "gzip", level: 1 }, encode: promisify(gzip), decode: promisify(gunzip) },
  zstd: {
    config: { id: "zstd", level: 1 },
    encode: async (bytes) => zstd.encode(bytes),
    decode: async (bytes) => zstd.decode(bytes),
  },
  lz4: {
    config: { id: "lz4", acceleration: 1 },
    encode: async (bytes) => lz4.encode(bytes),
    decode: async (bytes) => lz4.decode(bytes),
  },
  blosc: {
    config: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 },
    encode: async (bytes) => blosc.encode(bytes),
    decode: async (bytes) => blosc.decode(bytes),
  },
};

/** `compressor` and `filters` as a configuration says them. */
export function configOf(chain: ChainSpec, itemSize: number): { compressor: unknown; filters: unknown } {
  return {
    compressor: COMPRESSORS[chain.compressor].config,
    filters: chain.shuffled ? [{ id: "shuffle", elementsize: itemSize }] : null,
  };
}

/** Encodes one chunk. */
export async function encodeChain(
  chunk: Uint8Array,
  chain: ChainSpec,
  itemSize: number,
): Promise<Uint8Array> {
  return COMPRESSORS[chain.compressor].encode(chain.shuffled ? shuffle(chunk, itemSize) : chunk);
}

/** The members of a `.zarray` that say the chain. */
export function chainMembers(chain: ChainSpec, itemSize: number): string {
  const { compressor, filters } = configOf(chain, itemSize);
  return `"compressor":${JSON.stringify(compressor)},"filters":${JSON.stringify(filters)}`;
}

/** Decodes one chunk as a client does that reads `.zarray`. */
export async function decodeAs(
  bytes: Uint8Array,
  document: {
    readonly compressor: { readonly id: string } | null;
    readonly filters: readonly unknown[] | null;
  },
  itemSize: number,
): Promise<Uint8Array> {
  const id = (document.compressor?.id ?? "none") as ChainSpec["compressor"];
  const decoded = await COMPRESSORS[id].decode(bytes);
  return document.filters === null ? new Uint8Array(decoded) : unshuffle(new Uint8Array(decoded), itemSize);
}

function shuffle(bytes: Uint8Array, itemSize: number): Uint8Array {
  const items = bytes.length / itemSize;
  return bytes.map((_, place) => bytes[(place % items) * itemSize + Math.floor(place / items)] as number);
}

function unshuffle(bytes: Uint8Array, itemSize: number): Uint8Array {
  const items = bytes.length / itemSize;
  return bytes.map((_, place) => bytes[(place % itemSize) * items + Math.floor(place / itemSize)] as number);
}
