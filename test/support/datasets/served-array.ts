import { gather } from "../../../src/codec/copy-strided.js";
import { decodeSteps } from "../../../src/codec/run-steps.js";
import type { CodecSpec } from "../../../src/zarr/codec-step.js";
import { createEncodingPlan } from "../../../src/zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../../../src/zarr/plan/encoding-plan.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import { gridPositions } from "./stored-chunks.js";

/** What a client that knows only the plan's served side reads: items of the array in C order, and the padding. */
export async function readServed(
  plan: EncodingPlan,
  steps: EncodingPlan["decode"],
  serve: (coords: readonly number[]) => Promise<Uint8Array | undefined>,
): Promise<{ array: Uint8Array; padding: boolean }> {
  const { shape, served, itemSize } = plan;
  const fill = plan.fillItem ?? new Uint8Array(itemSize);
  const array = new Uint8Array(shape.reduce((product, length) => product * length, itemSize));
  for (let at = 0; at < array.length; at += itemSize) array.set(fill, at);
  const whole = {
    bytes: array,
    origin: shape.map(() => 0),
    chunkShape: shape,
    axisOrder: shape.map((_, axis) => axis),
  };
  let padding = true;
  for (const coords of gridPositions(served.gridShape)) {
    const bytes = await serve(coords);
    if (bytes === undefined) continue;
    const raw = await decodeSteps(bytes, steps, "client");
    const origin = coords.map((index, axis) => index * served.chunkShape[axis]!);
    const chunk = { bytes: raw, origin, chunkShape: served.chunkShape, axisOrder: served.axisOrder };
    gather(chunk, whole, shape, itemSize);
    // Padding: everything of the chunk that the array does not cover.
    const covered = { ...chunk, bytes: new Uint8Array(raw.length) };
    gather({ ...whole, bytes: new Uint8Array(array.length).fill(1) }, covered, shape, itemSize);
    for (let at = 0; at < raw.length; at += itemSize) {
      if (covered.bytes[at] === 1) continue;
      padding &&= Buffer.compare(raw.subarray(at, at + itemSize), fill) === 0;
    }
  }
  return { array, padding };
}

/** Steps that undo the whole stored chain. */
export function decodeAll(stored: StoredArray): EncodingPlan["decode"] {
  const { variants: _variants, ...plain } = stored;
  return createEncodingPlan(
    { ...plain, compressorCount: 0, codecs: [...stored.codecs] },
    { compressor: null, filters: null },
  ).plan.decode;
}

/** Steps that undo what is served: what the document tells a client. */
export function decodeServed(
  stored: StoredArray,
  chunkShape: readonly number[] | undefined,
  compressor: CodecSpec | null | undefined,
): EncodingPlan["decode"] {
  const { document, plan } = createEncodingPlan(stored, { chunkShape, compressor });
  const codecs = [
    ...(document.filters ?? []),
    ...(document.compressor === null ? [] : [document.compressor]),
  ];
  return decodeAll({
    ...stored,
    chunkShape: plan.served.chunkShape,
    axisOrder: plan.served.axisOrder,
    codecs,
  });
}
