import { cfTimeAttributes } from "../../cf/cf-time.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { elementCount } from "../../model/data-tree.js";
import { parseDataType } from "../../model/data-type.js";
import { fillItemToJson, NOT_A_TIME } from "../../model/fill-value.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../codec-step.js";
import type { AskedCodecs } from "../plan/codec-steps.js";
import type { PlannedArray } from "../plan/create-encoding-plan.js";
import { unservable } from "../plan/encoding-plan.js";
import type { StoredArray } from "../stored-array.js";
import { variableLengthItem } from "./v3-fill-value.js";
import { isServedAsStored, type V3Array, writeV3 } from "./write-v3.js";

/** Codecs of the Zarr v3 core specification and of its registry that readers commonly have. */
const CODECS: ReadonlySet<unknown> = new Set([
  ...["bytes", "transpose", "sharding_indexed", "vlen-utf8", "vlen-bytes"],
  ...["blosc", "gzip", "zstd", "crc32c"],
]);

/** Plans an array with other codecs than its own. */
export type PlanWithCodecs = (stored: StoredArray, codecs: AskedCodecs) => PlannedArray;

/**
 * Describes an array in Zarr v3 with codecs of the registry and types that readers commonly have. Chunks in other codecs are encoded
 * with Blosc. Times are integers with units of CF, and the same bytes. Texts of a fixed length are encoded as `string` or `bytes`.
 * @param planned The plan of v2, which stays if its codecs are portable.
 * @param isAsked Whether the operator asks for another encoding than the stored one.
 * @param plan Plans the array with portable codecs.
 * @throws ZpublishError `unsupported`, naming the array, if it cannot be made portable
 */
export function writePortableV3(
  stored: StoredArray,
  planned: PlannedArray,
  dims: readonly string[],
  isAsked: boolean,
  plan: PlanWithCodecs,
): V3Array {
  const { v3, dataType } = stored;
  const array = "US".includes(dataType.kind) ? withoutFixedLength(stored) : stored;
  const { filters, compressor } = planned.document;
  const names = isServedAsStored(stored, isAsked)
    ? namesOf(v3?.codecs ?? [])
    : [...(filters ?? []), ...(compressor === null ? [] : [compressor])].map(({ id }) => id);
  if (array === stored && names.every((name) => CODECS.has(name)))
    return withPortableType(writeV3(stored, planned, dims, isAsked), stored);
  const kept = array.dataType.kind === "O" ? array.codecs.slice(0, 1) : null;
  const replaced = plan(array, { filters: kept, compressor: DEFAULT_COMPRESSOR });
  return withPortableType(writeV3(array, replaced, dims, true), stored);
}

/** Lists the codecs of a `zarr.json`, those within shards and of their index too. */
function namesOf(codecs: JsonValue): unknown[] {
  return (codecs as readonly JsonValue[]).flatMap((codec) => {
    const { name, configuration = {} } = typeof codec === "string" ? { name: codec } : (codec as JsonObject);
    const { codecs: inner = [], index_codecs: ofIndex = [] } = configuration as JsonObject;
    return [name, ...namesOf(inner), ...namesOf(ofIndex)];
  });
}

/** @throws ZpublishError `unsupported`, naming the array, if its type is not portable */
function withPortableType({ document, plan }: V3Array, stored: StoredArray): V3Array {
  const { kind, numpyName } = stored.dataType;
  const { data_type, fill_value, attributes } = document;
  if (!"VMm".includes(kind))
    return {
      plan,
      document: { ...document, data_type: data_type === "variable_length_bytes" ? "bytes" : data_type! },
    };
  const time = cfTimeAttributes(stored.dataType);
  if (time === undefined) throw unservable(stored, `Zarr v3 has no portable name for items of ${numpyName}`);
  const integers = {
    data_type: "int64",
    fill_value: fill_value === "NaT" ? NOT_A_TIME : fill_value!,
    attributes: { ...(attributes as JsonObject), ...time },
  };
  return { plan, document: { ...document, ...integers } };
}

/**
 * Returns an array of texts of a fixed length as one of items without, whose chunks decode to what its first filter writes.
 * @throws ZpublishError `unsupported`, naming the array, if its texts have no bytes
 */
function withoutFixedLength({ v3: _form, ...stored }: StoredArray): StoredArray {
  const { dataType, fill, codecs, chunkShape } = stored;
  const { itemSize, kind, zarr, numpyName } = dataType;
  // xarray joins characters along their last axis, if they are of the type S1.
  const isCharacters = kind === "S" && itemSize === 1 && chunkShape.length > 0;
  if (itemSize === 0 || isCharacters)
    throw unservable(stored, `Zarr v3 has no portable name for items of ${numpyName}`);
  const filter = kind === "U" ? "vlen-utf8" : "vlen-bytes";
  const byteLength = itemSize * elementCount(chunkShape.map((length) => Math.max(1, length)));
  const text: CodecSpec = { id: "fixed-text", dtype: zarr, filter, byteLength };
  const item = fill.item && variableLengthItem(fillItemToJson(fill.item, dataType), filter);
  // zarr-python 3.0 writes such items under a type of fixed length.
  const chain = codecs[0]?.id === filter ? codecs : [{ id: filter }, text, ...codecs];
  const fields = { dataType: parseDataType("|O"), codecs: chain };
  // Readers disagree about fill values of byte strings.
  const ofBytes = { served: null, item, absentIsServed: item === null };
  return { ...stored, ...fields, fill: kind === "U" ? { ...fill, item } : ofBytes };
}
