import { isJsonArray, type JsonObject, type JsonValue, toNumber } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { fillItemToJson } from "../../model/fill-value.js";
import type { CodecSpec } from "../codec-step.js";
import { invalidField, parseArray, parseObject } from "../metadata-fields.js";
import { parseV3DataType } from "./v3-data-type.js";
import { unsupported, v3Document } from "./v3-extension.js";
import { parseV3FillItem } from "./v3-fill-value.js";

/**
 * Codecs of the registry from values to values, by name: each parses a configuration into a codec that is decoded here, with `dtype` for
 * its decoded side and `astype` for its encoded one. Scalars become texts such as `-1` and `NaN`, which keep integers of 64 bits.
 * https://github.com/zarr-developers/zarr-extensions/tree/main/codecs has what they mean.
 */
export const VALUE_CODECS: Readonly<
  Record<string, (configuration: JsonObject, itemType: JsonValue) => CodecSpec>
> = {
  scale_offset(configuration, itemType) {
    assertKeys(configuration, ["offset", "scale"]);
    const type = numberType(itemType);
    const offset = scalarText(configuration.offset ?? 0, type);
    const scale = scalarText(configuration.scale ?? 1, type);
    if (Number(scale) === 0) throw invalidField(v3Document, "scale of scale_offset not to be 0", 0);
    return { id: "scale_offset", dtype: type.zarr, astype: type.zarr, offset, scale };
  },
  cast_value(configuration, itemType) {
    assertKeys(configuration, ["data_type", "rounding", "out_of_range", "scalar_map"]);
    const { data_type, rounding = "nearest-even", out_of_range = "refuse", scalar_map = {} } = configuration;
    const decoded = numberType(itemType);
    const encoded = numberType(parseV3DataType(data_type, "<").dataType.zarr);
    assertOneOf("rounding", rounding, ROUNDINGS);
    assertOneOf("out_of_range", out_of_range, ["refuse", "clamp", encoded.kind === "f" ? "clamp" : "wrap"]);
    const map = parseObject(scalar_map, v3Document, "scalar_map of cast_value");
    assertKeys(map, ["encode", "decode"]);
    const decode = parseArray(map.decode ?? [], v3Document, "decode of scalar_map").map((entry) => {
      const [from, to] = isJsonArray(entry) ? entry : [];
      return [scalarText(from, encoded), scalarText(to, decoded)];
    });
    return { id: "cast_value", dtype: decoded.zarr, astype: encoded.zarr, rounding, out_of_range, decode };
  },
};

const ROUNDINGS = ["nearest-even", "towards-zero", "towards-positive", "towards-negative", "nearest-away"];

/**
 * Parses `packbits`, which makes bytes of an array. The registry's schema has other names of its fields than the text, which counts.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parsePackbits(configuration: JsonObject, itemType: JsonValue): CodecSpec {
  assertKeys(configuration, ["padding_encoding", "first_bit", "last_bit"]);
  const { kind, itemSize, numpyName } = parseDataType(itemType);
  const componentSize = kind === "c" ? itemSize / 2 : itemSize;
  if (!"biufc".includes(kind) || componentSize > 8) throw unsupported("packbits of numbers", numpyName);
  const { padding_encoding: padding = "none", first_bit, last_bit } = configuration;
  assertOneOf("padding_encoding", padding, ["none", "first_byte", "last_byte"]);
  const width = kind === "b" ? 1 : 8 * componentSize;
  const firstBit = toNumber(first_bit ?? 0) ?? -1;
  const bits = (toNumber(last_bit ?? width - 1) ?? -1) - firstBit + 1;
  if (!(Number.isInteger(firstBit) && firstBit >= 0 && bits >= 1 && firstBit + bits <= width)) {
    throw invalidField(v3Document, `first_bit and last_bit of 0 to ${width - 1}`, configuration);
  }
  return { id: "v3-packbits", componentSize, firstBit, bits, isSigned: kind === "i", padding };
}

/** Returns the least and the greatest integer of a type. */
export function integerBounds({ kind, itemSize }: DataType): [least: bigint, greatest: bigint] {
  const span = 1n << BigInt(8 * itemSize);
  return kind === "u" ? [0n, span - 1n] : [-span / 2n, span / 2n - 1n];
}

/** Asserts that a configuration has no other keys: the registry reserves them. */
function assertKeys(configuration: JsonObject, known: readonly string[]): void {
  const other = Object.keys(configuration).find((key) => !known.includes(key));
  if (other !== undefined) throw invalidField(v3Document, `only the keys ${known.join(", ")}`, other);
}

function assertOneOf(what: string, value: JsonValue, known: readonly string[]): void {
  if (known.includes(value as string)) return;
  throw invalidField(v3Document, `${what} to be one of ${known.join(", ")}`, value);
}

function numberType(itemType: JsonValue): DataType {
  const type = parseDataType(itemType);
  if ("iuf".includes(type.kind) && type.itemSize <= 8) return type;
  throw unsupported("integers or floats beside scale_offset and cast_value", type.numpyName);
}

function scalarText(value: JsonValue | undefined, type: DataType): string {
  const item = parseV3FillItem(value, type);
  if (item === null) throw invalidField(v3Document, `a scalar of ${type.numpyName}`, value);
  const json = fillItemToJson(item, type);
  return typeof json === "string" ? json : stringifyJson(json);
}
