import type { JsonValue } from "../../json/json-value.js";
import type { CodecSpec } from "../codec-spec.js";

/** `.zarray` of the Zarr v2 specification, complete. Field names are the specification's. */
export interface ArrayDocument {
  readonly chunks: readonly number[];
  readonly compressor: CodecSpec | null;
  readonly dimension_separator: "." | "/";
  readonly dtype: JsonValue;
  readonly fill_value: JsonValue;
  readonly filters: readonly CodecSpec[] | null;
  readonly order: "C" | "F";
  readonly shape: readonly number[];
  readonly zarr_format: 2;
}
