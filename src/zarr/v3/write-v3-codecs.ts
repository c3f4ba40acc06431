import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { DataType } from "../../model/data-type.js";
import type { CodecSpec } from "../codec-spec.js";
import { bloscShuffleOf } from "../plan/blosc-rules.js";
import { completeCodec } from "../plan/codec-rules.js";
import { unservable } from "../plan/unservable.js";
import { ARRAY_FILTERS, BLOSC_SHUFFLE_NAMES, BYTE_CODECS } from "./v3-codecs.js";
import type { V3TypeName } from "./write-v3-data-type.js";

/** A chain of codecs of a served array, in the terms of v2. */
export interface V2Chain {
  readonly path: string;
  readonly dataType: DataType;
  readonly order: "C" | "F";
  readonly rank: number;
  /** Filters and compressor, innermost first; without the filter that makes bytes of items without a fixed size. */
  readonly codecs: readonly CodecSpec[];
}

/**
 * Writes the `codecs` of an array in v3: transpose, filters on values, `bytes` or a serializer, filters on bytes.
 * @param serializer `vlen-utf8` or `vlen-bytes` for items without a fixed size; else the codec is `bytes`.
 * @throws ZpublishError `unsupported`, naming the array, if v3 cannot say it.
 */
export function v3Codecs(
  { path, dataType, order, rank, codecs }: V2Chain,
  serializer: "vlen-utf8" | "vlen-bytes" | undefined,
  endian: V3TypeName["endian"],
): JsonObject[] {
  const written: JsonObject[] = [];
  if (order === "F" && rank > 1)
    written.push({
      name: "transpose",
      configuration: { order: Array.from({ length: rank }, (_, i) => rank - 1 - i) },
    });
  const isOnValues = ({ id }: CodecSpec) => ARRAY_FILTERS.has(id);
  const firstOnBytes = codecs.findIndex((codec) => !isOnValues(codec));
  const valueCount = firstOnBytes < 0 ? codecs.length : firstOnBytes;
  const onValues = codecs.slice(0, valueCount);
  // There a filter's output has the byte order of the codec `bytes`; in v2 the filter says its own.
  if (onValues.some(isBigEndian))
    throw unservable({ path }, "Zarr v3 cannot say a filter on big-endian values");
  written.push(...onValues.map(numcodec));
  if (serializer !== undefined) written.push({ name: serializer });
  else if (valueCount > 0) written.push({ name: "bytes", configuration: { endian: "little" } });
  else written.push(endian === undefined ? { name: "bytes" } : { name: "bytes", configuration: { endian } });
  // Blosc's typesize only helps an encoder; no client here encodes.
  const itemSize = Math.max(1, dataType.itemSize);
  for (const codec of codecs.slice(valueCount)) {
    if (!BYTE_CODECS.has(codec.id)) {
      const problem = isOnValues(codec)
        ? `the filter ${codec.id} behind one on bytes`
        : `the codec ${codec.id}`;
      throw unservable({ path }, `Zarr v3 has no name for ${problem}`);
    }
    written.push(coreCodec(completeCodec(codec), itemSize) ?? numcodec(codec));
  }
  return written;
}

/** Writes a codec that the core specification or its registry names; undefined if only numcodecs does. */
function coreCodec(codec: CodecSpec, itemSize: number): JsonObject | undefined {
  switch (codec.id) {
    case "gzip":
      return { name: "gzip", configuration: { level: codec.level as JsonValue } };
    case "zstd":
      return { name: "zstd", configuration: { level: codec.level as JsonValue, checksum: false } };
    case "blosc": {
      const { cname, clevel, blocksize } = codec;
      const typesize = Math.min(255, itemSize);
      const shuffle = BLOSC_SHUFFLE_NAMES[bloscShuffleOf(codec.shuffle, itemSize)] ?? "noshuffle";
      return {
        name: "blosc",
        configuration: { typesize, cname, clevel, shuffle, blocksize } as JsonObject,
      };
    }
    default:
      return undefined;
  }
}

function isBigEndian(filter: CodecSpec): boolean {
  return Object.values(filter).some((value) => typeof value === "string" && value.startsWith(">"));
}

function numcodec({ id, ...configuration }: CodecSpec): JsonObject {
  return { name: `numcodecs.${id}`, configuration };
}
