import { ZpublishError } from "../../errors.js";
import { stringifyJson } from "../../json/stringify-json.js";
import { elementCount } from "../../model/data-tree.js";
import type { DataType } from "../../model/data-type.js";
import type { CodecSpec, CodecStep } from "../codec-step.js";
import type { StoredArray } from "../stored-array.js";
import {
  codecRule,
  completeCodec,
  decodeProblem,
  deltaEncodeProblem,
  encodedByteLength,
  encodedItemSize,
  encodeProblem,
  filterTypes,
  isInternal,
  RULED_CODEC_IDS,
  sameCodec,
  servedCodec,
} from "./codec-rules.js";
import { plainValue, unservable } from "./encoding-plan.js";

/** Codecs that an operator asks for; what is undefined stays as stored. */
export interface AskedCodecs {
  readonly compressor?: CodecSpec | null | undefined;
  readonly filters?: readonly CodecSpec[] | null | undefined;
}

/** The codecs of a served document. */
interface ServedCodecs {
  readonly filters: readonly CodecSpec[];
  readonly compressor: CodecSpec | null;
  /** Inner codec of Blosc that is asked for, or stored, and served as lz4; undefined if there is none. */
  readonly replacedCname: string | undefined;
}

/** Inner codecs of Blosc that are decoded but not encoded. What would be encoded with them is encoded with lz4. */
const DECODED_CNAMES: readonly unknown[] = ["lz4hc", "blosclz"];

/**
 * Chooses the codecs of the served document: those that are asked for, else the stored ones as far as Zarr v2 has them.
 * @param isRechunk Whether every codec has to encode again, stored ones too.
 * @throws ZpublishError `unsupported` or `invalid-config`, naming the array.
 */
export function servedCodecs(stored: StoredArray, asked: AskedCodecs, isRechunk: boolean): ServedCodecs {
  const said = stored.codecs.filter((codec) => !isInternal(codec)).map(servedCodec);
  const hasOther = said.length > (stored.dataType.kind === "O" ? 1 : 0);
  const isCompressor = hasOther && (stored.compressorCount === 1 || said.length < stored.codecs.length);
  const last = isCompressor ? said.at(-1) : undefined;
  const storedCompressor = last !== undefined && canCompress(last, stored) ? last : null;
  const storedFilters = storedCompressor === null ? said : said.slice(0, -1);

  const askedCompressor = asked.compressor === undefined ? stored.servedCompressor : asked.compressor;
  const compressor =
    askedCompressor === undefined
      ? storedCompressor
      : askedCompressor && resolveAsked(stored, askedCompressor, "compressor", storedCompressor);
  const filters =
    asked.filters === undefined
      ? (stored.servedFilters ?? storedFilters)
      : (asked.filters ?? []).map((filter, index) =>
          resolveAsked(stored, filter, "filter", storedFilters[index] ?? null),
        );
  if (stored.dataType.kind === "O" && commonLength(filters, storedFilters) === 0) {
    throw new ZpublishError(
      "unsupported",
      `array '${stored.path}': items of ${stored.dataType.numpyName} exist only through their first filter, which must stay`,
    );
  }
  const chain = compressor === null ? filters : [...filters, compressor];
  const kept = isRechunk ? 0 : commonLength(stored.codecs, chain);
  const served = chain.map((codec, index) => (index < kept ? codec : encodedCodec(codec)));
  return {
    filters: served.slice(0, filters.length),
    compressor: served[filters.length] ?? null,
    replacedCname: chain.find((codec, index) => codec !== served[index])?.cname as string | undefined,
  };
}

/** Whether the outermost codec that is served is a compressor: v2 calls it so, or its output has no fixed length. */
function canCompress(codec: CodecSpec, stored: StoredArray): boolean {
  if (stored.compressorCount === 1 && stored.codecs.at(-1)?.id === codec.id) return true;
  return encodedByteLength(completeCodec(codec), 0) === null;
}

/** Resolves a codec that is asked for. One that is stored already needs no check: it stays as it is. */
function resolveAsked(
  stored: StoredArray,
  codec: CodecSpec,
  role: "compressor" | "filter",
  existing: CodecSpec | null,
): CodecSpec {
  if (existing !== null && sameCodec(codec, existing)) return existing;
  const resolved = askedCodec(codec, role, stored);
  return existing !== null && sameCodec(resolved, existing) ? existing : resolved;
}

/**
 * Checks a codec that an operator asked for, and completes its options as the served document has them.
 * @throws ZpublishError `unsupported` if the codec cannot be asked for; `invalid-config` if an option is not valid.
 */
function askedCodec(
  codec: CodecSpec,
  role: "compressor" | "filter",
  { path, dataType }: { readonly path: string; readonly dataType: DataType },
): CodecSpec {
  const where = `array '${path}': ${role}`;
  const rule = codecRule(codec.id);
  if (rule?.askedAs !== role) {
    throw new ZpublishError(
      "unsupported",
      `${where}: expected ${askable(role).join(", ")} or none, received ${codec.id}`,
    );
  }
  const given = withTypeDefaults(codec, dataType);
  const known = [...Object.keys(rule.options), ...(rule.omitted ?? [])];
  for (const [key, value] of Object.entries(given)) {
    if (key === "id") continue;
    if (!known.includes(key)) {
      throw new ZpublishError(
        "invalid-config",
        `${where} ${codec.id}: expected options among ${known.join(", ")}, received ${key}`,
      );
    }
    const option = rule.options[key];
    const plain = plainValue(value);
    if (option !== undefined && plain !== null && !option.accepts(plain)) {
      throw new ZpublishError(
        "invalid-config",
        `${where} ${codec.id}: ${key}: expected ${option.expected}, received ${stringifyJson(plain)}`,
      );
    }
  }
  if (codec.id === "zstd" && given.checksum === true) {
    throw new ZpublishError(
      "unsupported",
      `${where} zstd: checksum: expected false, received true: not written here`,
    );
  }
  const complete = completeCodec(given);
  if (complete.id === "delta") assertDelta(complete, dataType, where);
  return complete;
}

function askable(role: "compressor" | "filter"): string[] {
  return RULED_CODEC_IDS.filter((id) => codecRule(id)?.askedAs === role);
}

/** numcodecs has no better default for `elementsize` than 4, and none for `dtype`. */
function withTypeDefaults(codec: CodecSpec, dataType: DataType): CodecSpec {
  if (codec.id === "shuffle") return { elementsize: Math.max(1, dataType.itemSize), ...codec };
  if (codec.id !== "delta") return codec;
  const dtype = "Mm".includes(dataType.kind) ? `${dataType.byteOrder}i8` : dataType.zarr;
  return { dtype, ...codec };
}

/** Asserts that a `delta` decodes to the same items: floats round, and other types have no differences. */
function assertDelta(codec: CodecSpec, dataType: DataType, where: string): void {
  if (!"iuMm".includes(dataType.kind)) {
    const why = dataType.kind === "f" ? "differences of floats would round its values" : "no integers";
    throw new ZpublishError(
      "unsupported",
      `${where} delta: expected an array of integers or times, received ${dataType.numpyName}: ${why}`,
    );
  }
  const { dtype } = filterTypes(codec);
  if (dtype.itemSize !== dataType.itemSize || dtype.isBigEndian !== (dataType.byteOrder === ">")) {
    throw new ZpublishError(
      "invalid-config",
      `${where} delta: dtype: expected a type of ${dataType.itemSize} bytes in the array's byte order (${dataType.numpyStr}), received ${String(codec.dtype)}`,
    );
  }
  const problem = deltaEncodeProblem(codec);
  if (problem !== undefined) throw new ZpublishError("unsupported", `${where}: ${problem}`);
}

/** The codec that encodes what is stored with, or asked for as, this one. */
export function encodedCodec(codec: CodecSpec): CodecSpec {
  return codec.id === "blosc" && DECODED_CNAMES.includes(codec.cname) ? { ...codec, cname: "lz4" } : codec;
}

/** Counts the codecs that two chains have in common, innermost first. They need no work. */
export function commonLength(a: readonly CodecSpec[], b: readonly CodecSpec[]): number {
  let count = 0;
  while (count < a.length && count < b.length && sameCodec(a[count]!, b[count]!)) count++;
  return count;
}

/** Filters that write a chunk as its number of items, then each item with its length before it. */
const VARIABLE_LENGTH_FILTERS = ["vlen-utf8", "vlen-bytes"];

/**
 * Creates the steps of a chain, innermost first, with the lengths between them.
 * @param chunkShape Elements per axis, each at least 1.
 * @param maxChunkBytes Limit for bytes whose length is not known beforehand.
 * @throws ZpublishError `unsupported`, naming the array, if a filter's items are not whole.
 */
export function createSteps(
  stored: Pick<StoredArray, "dataType" | "path">,
  chain: readonly CodecSpec[],
  chunkShape: readonly number[],
  maxChunkBytes: number,
): CodecStep[] {
  const { kind } = stored.dataType;
  let { itemSize } = stored.dataType;
  let byteLength: number | null = kind === "O" ? null : elementCount(chunkShape) * itemSize;
  itemSize = Math.max(1, itemSize);
  return chain.map((spec) => {
    const codec = completeCodec(spec);
    const step: CodecStep = Object.freeze({
      codec,
      decodedByteLength: byteLength,
      maxDecodedByteLength: byteLength ?? maxChunkBytes,
      itemSize,
    });
    // Texts without a fixed size may be stored with one.
    const isKnown = byteLength !== null || codec.id === "fixed-text";
    if (isKnown && decodeProblem(codec) === undefined) {
      byteLength = encodedByteLength(codec, byteLength ?? 0);
      itemSize = encodedItemSize(codec, itemSize);
      assertWholeItems(stored, codec, step.decodedByteLength, byteLength);
    } else {
      byteLength = null;
      itemSize = 1;
    }
    return step;
  });
}

/** Asserts that a chunk is a whole number of the items that a filter works on. */
function assertWholeItems(
  stored: Pick<StoredArray, "path">,
  codec: CodecSpec,
  decodedByteLength: number | null,
  byteLength: number | null,
): void {
  const isWhole = byteLength === null || Number.isInteger(byteLength);
  const { elementsize } = codec;
  const fits = codec.id !== "shuffle" || (decodedByteLength ?? 0) % Number(elementsize) === 0;
  if (isWhole && fits) return;
  throw unservable(
    stored,
    `${codec.id}: expected chunks of whole items, received ${decodedByteLength} bytes per chunk`,
  );
}

/**
 * Computes the byte length of every stored chunk; null if the outermost codec's output has no length known beforehand.
 * @param steps Those of the stored codecs, innermost first.
 * @param chunkShape Elements per axis of a stored chunk.
 */
export function storedByteLengthOf(
  { dataType }: Pick<StoredArray, "dataType">,
  steps: readonly CodecStep[],
  chunkShape: readonly number[],
): number | null {
  const outermost = steps.at(-1);
  if (outermost === undefined) {
    return dataType.kind === "O" ? null : elementCount(chunkShape) * dataType.itemSize;
  }
  const { codec, decodedByteLength } = outermost;
  if (decodedByteLength === null || decodeProblem(codec) !== undefined) return null;
  return encodedByteLength(codec, decodedByteLength);
}

/**
 * Creates the steps that encode a chunk of fill values. It has to decode with the stored options, not to be encoded with
 * them: any inner codec of Blosc will do, and any level.
 * @throws ZpublishError `unsupported`, naming the array, if such a chunk cannot be encoded.
 */
export function fillSteps(
  stored: StoredArray,
  chain: readonly CodecSpec[],
  chunkShape: readonly number[],
  maxChunkBytes: number,
): CodecStep[] {
  const writable = writableChain(chain);
  // A chunk of variable-length items is filled with encoded ones, so that their filter is done already.
  const isVariable = VARIABLE_LENGTH_FILTERS.includes(chain[0]?.id ?? "") && stored.fill.item !== null;
  const done = stored.dataType.kind === "O" && isVariable ? 1 : 0;
  const problem = writable
    .slice(done)
    .map((codec) => encodeProblem(completeCodec(codec)))
    .find(Boolean);
  if (problem !== undefined || (stored.dataType.kind === "O" && !isVariable)) {
    const reason = problem ?? `items of ${stored.dataType.numpyName} have no fixed size`;
    throw unservable(stored, `absent chunks would have to be served filled, but ${reason}`);
  }
  return createSteps(stored, writable, chunkShape, maxChunkBytes).slice(done);
}

/** Returns a chain that can be encoded, and decodes with the options of another one. */
export function writableChain(chain: readonly CodecSpec[]): CodecSpec[] {
  return chain.map(writableCodec);
}

/** Returns a codec with defaults in place of the options that cannot be encoded. */
function writableCodec(spec: CodecSpec): CodecSpec {
  const codec = encodedCodec(spec);
  if (encodeProblem(completeCodec(codec)) === undefined) return codec;
  const rules = codecRule(codec.id)?.options ?? {};
  const known = Object.entries(codec).filter(
    ([key, value]) => rules[key]?.accepts(plainValue(value)) ?? true,
  );
  return Object.fromEntries(known) as CodecSpec;
}
