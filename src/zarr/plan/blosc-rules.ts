import { integer, type OptionRule, oneOf } from "./option-rules.js";

/** Options of Blosc, with numcodecs' defaults. */
export const BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  cname: oneOf("lz4", ["lz4", "lz4hc", "blosclz", "zstd", "zlib"]),
  clevel: integer(5, 0, 9),
  shuffle: integer(1, -1, 2),
  blocksize: integer(0, 0, 2 ** 31 - 1),
};

/** GDAL's names of Blosc's shuffles, by their number. */
const BLOSC_SHUFFLE_NAMES: readonly string[] = Object.freeze(["NONE", "BYTE", "BIT"]);
/** Blosc's shuffle that depends on the item size. */
const AUTO_SHUFFLE = -1;

/** Returns the number of Blosc's shuffle: none, byte, bit. Resolves "automatic" by item size, as numcodecs does. */
export function bloscShuffleOf(shuffle: unknown, itemSize: number): number {
  if (shuffle === AUTO_SHUFFLE) return itemSize === 1 ? 2 : 1;
  return typeof shuffle === "number" ? shuffle : BLOSC_SHUFFLE_NAMES.indexOf(shuffle as string);
}

/** Options of Blosc with which a chunk can be encoded. */
export const ENCODED_BLOSC_OPTIONS: Readonly<Record<string, OptionRule>> = {
  ...BLOSC_OPTIONS,
  cname: oneOf("lz4", ["lz4", "zstd", "zlib"]),
  shuffle: {
    fallback: 1,
    expected: `an integer from -1 to 2, or one of ${BLOSC_SHUFFLE_NAMES.join(", ")}`,
    accepts: (value) =>
      BLOSC_OPTIONS.shuffle?.accepts(value) === true || BLOSC_SHUFFLE_NAMES.includes(value as string),
  },
};
