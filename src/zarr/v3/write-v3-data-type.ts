import { isJsonArray, type JsonValue } from "../../json/json-value.js";
import type { DataType } from "../../model/data-type.js";
import { fillItemToJson, NOT_A_TIME } from "../../model/fill-value.js";
import { parseDataType } from "../../model/parse-data-type.js";
import { unservable } from "../plan/unservable.js";
import { CORE_TYPE_NAMES } from "./v3-data-type.js";

/** A data type as `zarr.json` says it. */
export interface V3TypeName {
  /** Value of `data_type`. */
  readonly dataType: JsonValue;
  /** Configuration of the codec `bytes`; undefined if byte order means nothing to the type. */
  readonly endian: "little" | "big" | undefined;
}

/**
 * Names a data type of fixed size in Zarr v3, by the names that zarr-python registers.
 * @throws ZpublishError `unsupported`, naming the array, if v3 has no name for it.
 */
export function v3TypeName(type: DataType, array: { readonly path: string }): V3TypeName {
  if (isJsonArray(type.zarr)) return structName(type.zarr, array);
  const { itemSize, byteOrder } = type;
  const endian = byteOrder === "|" ? undefined : byteOrder === ">" ? "big" : "little";
  const core = CORE_TYPE_NAMES.get(`${type.kind}${itemSize}`);
  if (core !== undefined) return { dataType: core, endian };
  switch (type.kind) {
    case "M":
    case "m": {
      const [, factor = "", unit = ""] = /^(\d*)(.+)$/.exec(type.timeUnit as string) ?? [];
      const name = type.kind === "M" ? "numpy.datetime64" : "numpy.timedelta64";
      return { dataType: extension(name, { unit, scale_factor: Number(factor || 1) }), endian };
    }
    case "U":
      return { dataType: extension("fixed_length_utf32", { length_bytes: itemSize }), endian };
    case "S":
      return { dataType: extension("null_terminated_bytes", { length_bytes: itemSize }), endian };
    case "V":
      return { dataType: extension("raw_bytes", { length_bytes: itemSize }), endian };
    default:
      throw unservable(array, `Zarr v3 has no name for items of ${type.numpyName}`);
  }
}

/** zarr-python before 3.2 knows `structured` only, later versions that and `struct`. */
function structName(fields: readonly JsonValue[], array: { readonly path: string }): V3TypeName {
  const endians = new Set<V3TypeName["endian"]>();
  const named = fields.map((field) => {
    const [name, type, shape] = field as readonly JsonValue[];
    if (shape !== undefined) throw unservable(array, `Zarr v3 has no name for fields with a shape`);
    const { dataType, endian } = v3TypeName(parseDataType(type as JsonValue), array);
    if (endian !== undefined) endians.add(endian);
    return [name as JsonValue, dataType];
  });
  const [endian = "little", other] = endians;
  if (other !== undefined) throw unservable(array, "Zarr v3 has one byte order for all fields of an item");
  return { dataType: extension("structured", { fields: named }), endian };
}

function extension(name: string, configuration: Readonly<Record<string, JsonValue>>): JsonValue {
  return { name, configuration };
}

/**
 * Writes the `fill_value` of an array that has none of v3.
 * @param served `fill_value` of the served `.zarray`. A null becomes zero: v3 requires a value.
 */
export function v3FillValue(served: JsonValue, type: DataType): JsonValue {
  if (type.kind === "O") return typeof served === "string" ? served : "";
  if (served === null) return fillItemToJson(new Uint8Array(type.itemSize), type);
  // More digits than most JSON parsers keep.
  if ((type.kind === "M" || type.kind === "m") && served === NOT_A_TIME) return "NaT";
  return served;
}
