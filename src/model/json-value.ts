import type { LosslessNumber } from "lossless-json";

/**
 * A JSON value that lost nothing on the way in.
 *
 * Numbers are `number` where JavaScript writes them back as they were read (`1`, `0.5`), `bigint` for integers
 * beyond 2^53, `LosslessNumber` (the literal text) for the rest (`1.0`, `1e-05`, `-0`): a Python client tells
 * `1.0` from `1`. `NaN` and the infinities, which zarr-python writes bare, are `number`s here and become
 * the strings `"NaN"`, `"Infinity"`, `"-Infinity"` on the way out (RFC 8259 has no literal for them).
 */
export type JsonValue =
  | null
  | boolean
  | string
  | number
  | bigint
  | LosslessNumber
  | readonly JsonValue[]
  | JsonObject;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}
