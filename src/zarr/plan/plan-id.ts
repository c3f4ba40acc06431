import { createHash } from "node:crypto";
import { stringifyJson } from "../../json/stringify-json.js";
import type { CodecSpec } from "../codec-spec.js";
import type { CodecStep } from "../codec-step.js";
import type { ChunkLayout, EncodingPlan } from "./encoding-plan.js";

/**
 * Part of every plan's id. Change it whenever an encoder, or the padding of chunks, writes other bytes than before, as a
 * new version of numcodecs.js may. {@link EncodingOptions.encoderRevision} has what depends on the machine or Node.
 */
export const CODEC_REVISION = "2";

/**
 * Computes a plan's id.
 * @param encoderRevision Same as in `EncodingOptions`.
 * @param growing Axis whose length is left out: versions of chunks say all that depends on it. Default: none.
 */
export function planId(
  fields: Omit<EncodingPlan, "id" | "source">,
  encoderRevision: (codec: CodecSpec) => string = () => "",
  growing?: number,
): string {
  const { fillItem, decode, encode, encodeAll, variants, compute } = fields;
  // Neither names nor bounds change bytes.
  const {
    path: _path,
    maxFilledByteLength: _maximum,
    variants: _variants,
    compute: _compute,
    ...rest
  } = fields;
  const kept = (lengths: readonly number[]) =>
    lengths.map((length, axis) => (axis === growing ? null : length));
  const layoutOf = (layout: ChunkLayout) => ({ ...layout, gridShape: kept(layout.gridShape) });
  const text = stringifyJson({
    ...rest,
    shape: kept(fields.shape),
    revision: CODEC_REVISION,
    fillItem: fillItem && Buffer.from(fillItem).toString("hex"),
    stored: layoutOf(fields.stored),
    served: layoutOf(fields.served),
    decode: decode.map(withoutBound),
    encode: encode.map(withoutBound),
    encodeAll: encodeAll.map(withoutBound),
    ...(variants && {
      variants: {
        decode: variants.decode.map((steps) => steps.map(withoutBound)),
        encode: variants.encode.map(withoutBound),
      },
    }),
    // Plain data, but for bytes.
    ...(compute && {
      compute: JSON.stringify(compute, (_key, value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value,
      ),
    }),
    encoders: [...encode, ...encodeAll, ...(variants?.encode ?? [])].map(({ codec }) =>
      encoderRevision(codec),
    ),
  });
  return createHash("sha256").update(text).digest().toString("hex", 0, 16);
}

function withoutBound({ maxDecodedByteLength: _maximum, ...step }: CodecStep) {
  return step;
}
