import { cfDecodingOf } from "../../cf/decoded-type.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { pythonFloat, shortestFloat } from "../../json/stringify-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { fillItemToJson, floatOf } from "../../model/fill-value.js";
import type { CodecSpec } from "../codec-step.js";
import { parseArray, parseObject, withoutKey } from "../metadata-fields.js";
import { parseV3DataType } from "./v3-data-type.js";
import { parseExtension, v3Document } from "./v3-extension.js";
import { maskFloat, parseV3FillItem } from "./v3-fill-value.js";
import { integerBounds, VALUE_CODECS } from "./value-codecs.js";

/** An array's `zarr.json` as it is read. */
interface PeeledDocument {
  readonly document: JsonObject;
  readonly isPacked: boolean;
  /** What became of codecs on values; undefined if there are none. */
  readonly remark?: string;
}

/** Other names of core types. */
const ALIASES: Readonly<Record<string, string>> = {
  complex_float32: "complex64",
  complex_float64: "complex128",
};

/**
 * Rewrites a document so that more clients can read the same chunks. `bitround` has nothing to decode, and is left out. `scale_offset`
 * and `cast_value` become CF's attributes of packed numbers, if xarray then computes exactly the values that the registry prescribes.
 * All other fields stay as they are.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function peelValueCodecs(stored: JsonObject): PeeledDocument {
  const type = nameOf(stored.data_type as JsonValue);
  const document = {
    ...stored,
    ...(Object.hasOwn(ALIASES, type) && { data_type: ALIASES[type] as string }),
    codecs: withCodecs(stored.codecs, (codec) => nameOf(codec) !== "bitround"),
  };
  const chain = innermostCodecs(document.codecs);
  const onValues = chain.filter((codec) => Object.hasOwn(VALUE_CODECS, nameOf(codec)));
  if (onValues.length === 0) return { document, isPacked: false };
  const packed = packedNumbers(document, chain);
  const names = onValues.map(nameOf).join(" and ");
  if (typeof packed === "string") return { document, isPacked: false, remark: `${names} decoded: ${packed}` };
  const codecs = withCodecs(document.codecs, (codec) => !onValues.includes(codec));
  const remark = `${names} served as attributes of packed numbers`;
  return { document: { ...document, ...packed, codecs }, isPacked: true, remark };
}

function nameOf(codec: JsonValue): string {
  return isJsonObject(codec) ? String(codec.name) : String(codec);
}

/** Returns codecs without some, also inside of shards. */
function withCodecs(codecs: JsonValue | undefined, keeps: (codec: JsonValue) => boolean): JsonValue {
  const kept = parseArray(codecs, v3Document, "codecs").filter(keeps);
  return kept.map((codec) => {
    if (nameOf(codec) !== "sharding_indexed" || !isJsonObject(codec)) return codec;
    const configuration = codec.configuration;
    if (!isJsonObject(configuration)) return codec;
    return { ...codec, configuration: { ...configuration, codecs: withCodecs(configuration.codecs, keeps) } };
  });
}

function innermostCodecs(codecs: JsonValue): readonly JsonValue[] {
  const chain = parseArray(codecs, v3Document, "codecs");
  const sharding = chain.find((codec) => nameOf(codec) === "sharding_indexed");
  if (sharding === undefined) return chain;
  return innermostCodecs(parseExtension(sharding, "every codec").configuration.codecs as JsonValue);
}

/** Attributes that mean something else beside packed numbers: other packing, categories, and ranges, which are of stored numbers then. */
const AMBIGUOUS = [
  ...["scale_factor", "add_offset", "_Unsigned", "dtype", "flag_values", "flag_masks"],
  ...["valid_min", "valid_max", "valid_range"],
];
const MASKS = ["_FillValue", "missing_value"];

/** Describes packed numbers: fields of a document, or the reason why codecs on values have to be decoded. */
function packedNumbers(document: JsonObject, chain: readonly JsonValue[]): JsonObject | string {
  const { dataType } = parseV3DataType(document.data_type, "<");
  if (dataType.kind !== "f" || dataType.itemSize < 4)
    return `${dataType.numpyName} is not what CF unpacks to`;
  const specs = leadingSpecs(chain, dataType.zarr);
  const [cast, scaling = undefined] = [...specs].reverse();
  if (cast?.id !== "cast_value" || specs.length > 2 || (scaling && scaling.id !== "scale_offset"))
    return "CF packs by one scale_offset and one cast_value";
  const packed = parseDataType(cast.astype as JsonValue);
  if (packed.kind === "f" || packed.itemSize > 4) return `${packed.numpyName} is not what CF packs to`;
  const map = cast.decode as readonly (readonly [string, string])[];
  if (map.length > 1 || map.some(([, value]) => value !== "NaN")) return "CF maps one number, to NaN";
  const attrs = parseObject(document.attributes ?? {}, v3Document, "attributes");
  const taken = AMBIGUOUS.find((key) => Object.hasOwn(attrs, key));
  if (taken !== undefined) return `the attribute ${taken} would mean something else`;
  if (/ since /.test(String(attrs.units))) return "times are not packed";
  const isNaNMark = (key: string) => Number.isNaN(floatOf(maskFloat(attrs[key] as JsonValue)));
  const marked = MASKS.find((key) => Object.hasOwn(attrs, key) && !isNaNMark(key));
  if (marked !== undefined) return `${marked} is another number than NaN`;
  const packing = {
    scale: Number(scaling?.scale ?? 1),
    offset: Number(scaling?.offset ?? 0),
    mark: map[0] && Number(map[0][0]),
  };
  return exactNumbers(document.fill_value, MASKS.reduce(withoutKey, attrs), dataType, packed, packing);
}

/** Parses the codecs on values that a chain begins with; empty if there are others between or after them. */
function leadingSpecs(chain: readonly JsonValue[], decodedType: JsonValue): CodecSpec[] {
  const isOnValues = (codec: JsonValue) => Object.hasOwn(VALUE_CODECS, nameOf(codec));
  const end = chain.findIndex((codec) => !isOnValues(codec) && nameOf(codec) !== "transpose");
  if (chain.slice(Math.max(0, end)).some(isOnValues)) return [];
  let itemType = decodedType;
  return chain.filter(isOnValues).map((codec) => {
    const { name, configuration } = parseExtension(codec, "every codec");
    const spec = (VALUE_CODECS[name] as (typeof VALUE_CODECS)[string])(configuration, itemType);
    itemType = spec.astype as JsonValue;
    return spec;
  });
}

/** How the registry decodes: `stored / scale + offset`, or NaN for the mark. */
interface Packing {
  readonly scale: number;
  readonly offset: number;
  readonly mark: number | undefined;
}

/** Compares what CF unpacks with what the registry decodes. Returns as {@link packedNumbers}. */
function exactNumbers(
  fillValue: JsonValue | undefined,
  attrs: JsonObject,
  dataType: DataType,
  packed: DataType,
  { scale, offset, mark }: Packing,
): JsonObject | string {
  const { itemSize } = dataType;
  const round = itemSize === 4 ? Math.fround : Number;
  const decode = (stored: number) => round(round(stored / scale) + offset);
  const factor = 1 / shortestFloat(scale, itemSize);
  const attributes: JsonObject = {
    ...attrs,
    scale_factor: pythonFloat(factor),
    add_offset: pythonFloat(offset),
    ...(mark !== undefined && { _FillValue: mark }),
  };
  // xarray of 2023 computes with single floats sometimes, later versions with double ones always.
  const isSingle = cfDecodingOf(packed, attributes, mark ?? null).itemSize === 4;
  const isSame = (stored: number): boolean => {
    const value = decode(stored);
    const single = Math.fround(Math.fround(stored * Math.fround(factor)) + Math.fround(offset));
    const isExact = Object.is(value, stored * factor + offset) && (!isSingle || value === single);
    return stored === mark || (isExact && Number.isFinite(value));
  };
  const areSame = packed.itemSize < 4 ? everyInteger(packed, isSame) : itemSize === 8 && isPowerOfTwo(scale);
  if (!areSame) return `multiplying with 1/${scale} does not give the same values as dividing`;
  const item = parseV3FillItem(fillValue, dataType);
  const fill = item === null ? undefined : floatOf(fillItemToJson(item, dataType));
  const stored = Number.isNaN(fill) ? mark : Math.round(((fill ?? Number.NaN) - offset) * scale) + 0;
  const [least, greatest] = integerBounds(packed);
  const isMeant =
    stored !== undefined &&
    (stored === mark
      ? Number.isNaN(fill)
      : stored >= least && stored <= greatest && Object.is(decode(stored), fill));
  return isMeant
    ? { data_type: packed.numpyName, fill_value: stored, attributes }
    : "no stored number means the fill_value";
}

/** Whether dividing and multiplying with the inverse are both exact: doubles hold all integers of 32 bits. */
function isPowerOfTwo(scale: number): boolean {
  const exponent = Math.round(Math.log2(Math.abs(scale)));
  return Math.abs(scale) === 2 ** exponent && Math.abs(exponent) < 512;
}

/** Tests the integers of a type of at most 16 bits. */
function everyInteger(type: DataType, test: (integer: number) => boolean): boolean {
  const [least, greatest] = integerBounds(type).map(Number) as [number, number];
  for (let integer = least; integer <= greatest; integer++) if (!test(integer)) return false;
  return true;
}
