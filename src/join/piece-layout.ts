import { createHash } from "node:crypto";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import type { PieceLayout } from "../zarr/chunk-reader.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import { createSteps, storedByteLengthOf } from "../zarr/plan/codec-steps.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { PartSpan } from "./joined-tree.js";
import type { PartStored } from "./stored-form.js";

/** Decoding of an array's stored chunks, which arrays of the same structure share. */
export type StoredLayout = Omit<PieceLayout, "name" | "title" | "conversion" | "hasOwnFill">;

/** Bound of bytes whose length is not known beforehand. */
const MAX_CHUNK_BYTES = 2 ** 30;

/** By the array object: most parts of a dataset have the same one. */
const layouts = new WeakMap<PartStored, StoredLayout>();

/**
 * Returns the layout of an array's stored chunks.
 * @throws ZpublishError `unsupported`, naming the array, if a filter's items are not whole.
 */
export function storedLayoutOf(stored: PartStored): StoredLayout {
  const known = layouts.get(stored);
  if (known !== undefined) return known;
  const { dataType, axisOrder, codecs, fill } = stored;
  const { itemSize } = dataType;
  const chunkShape = stored.chunkShape.map((length) => Math.max(1, length));
  const stepsOf = (chain: readonly CodecSpec[]) => createSteps(stored, chain, chunkShape, MAX_CHUNK_BYTES);
  const steps = stepsOf(codecs);
  const decode = steps.toReversed();
  const variants = (stored.variants ?? []).map((chain) => stepsOf(chain).reverse());
  const longest = maxStoredByteLength({
    kind: "rechunk",
    storedByteLength: storedByteLengthOf(stored, steps, chunkShape),
    ...{ itemSize, decode, encode: [], stored: { chunkShape } },
    ...(variants.length > 0 && { variants: { decode: variants } }),
  });
  const layout: StoredLayout = Object.freeze({
    ...{ chunkShape, axisOrder, itemSize, decode, variants },
    // Raw chunks have no step that bounds them.
    maxStoredByteLength: longest ?? (decode.length === 0 ? elementCount(chunkShape) * itemSize : undefined),
    fillItem: fill.item,
  });
  layouts.set(stored, layout);
  return layout;
}

/** A part's array as pieces of a joined one need it. */
export interface PartLayout {
  readonly layout: PieceLayout;
  /** As `ChunkPiece.part`. */
  readonly id: string;
}

/**
 * Creates the layout of a part's array in terms of the joined array.
 * @param store Name of the joined dataset, as in `PartChunks`.
 * @param part Name of the part.
 * @param own The part's array. If it has no joined axis, its chunks have length 1 along that.
 * @param joined The joined array, whose absent chunks may mean something else.
 */
export function createPartLayout(
  store: string,
  part: string,
  own: PartStored,
  { path, conversion }: Pick<PartSpan, "path" | "conversion">,
  joined: Pick<StoredArray, "fill" | "shape">,
  axis: number,
): PartLayout {
  const stored = storedLayoutOf(own);
  const isStacked = own.shape.length < joined.shape.length;
  const form = isStacked ? withAxis(stored, axis) : stored;
  const { fillItem, maxStoredByteLength: _bound, ...rest } = form;
  const content = {
    ...rest,
    conversion: conversion ?? null,
    fill: fillItem && Buffer.from(fillItem).toString("hex"),
  };
  const text = stringifyJson([part, path, content as unknown as JsonObject]);
  const id = createHash("sha256").update(text).digest().toString("hex", 0, 8);
  const title = `part '${part}', array '${path}'`;
  const hasOwnFill = conversion !== undefined || !isSameItem(fillItem, joined.fill.item);
  return { layout: Object.freeze({ ...form, name: `${store}\n${id}`, title, conversion, hasOwnFill }), id };
}

/** Returns a layout with another axis, along which chunks have length 1. */
function withAxis(layout: StoredLayout, axis: number): StoredLayout {
  const axisOrder = layout.axisOrder.map((each) => (each < axis ? each : each + 1));
  return { ...layout, chunkShape: layout.chunkShape.toSpliced(axis, 0, 1), axisOrder: [axis, ...axisOrder] };
}

function isSameItem(one: Uint8Array | null, other: Uint8Array | null): boolean {
  const longer = one ?? other ?? [];
  return longer.every((_, index) => (one?.[index] ?? 0) === (other?.[index] ?? 0));
}
