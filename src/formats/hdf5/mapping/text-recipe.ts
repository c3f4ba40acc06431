import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../../zarr/codec-step.js";
import type { FileArray } from "../../file-index.js";
import type { MappedLayout } from "./map-layout.js";

/** How the chunks of variable-length strings are made: where the references to the strings are. */
export interface TextRecipe {
  /** Shape of the array. */
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly places: TextPlaces;
  /** Codecs of the references, by variant. */
  readonly codecs: readonly (readonly CodecSpec[])[];
  /** Text of strings that were never written. */
  readonly fill: string;
}

type TextPlaces = FileArray["chunks"];

/**
 * Turns the layout of references into one whose chunks are made of the strings that they lead to.
 * @param layout That of the references: items of 16 bytes.
 */
export function textLayout(layout: MappedLayout, shape: readonly number[], fill: string): MappedLayout {
  const { chunkShape, chunks, codecs, variants = [] } = layout;
  const recipe: TextRecipe = { shape, chunkShape, places: chunks, codecs: [codecs, ...variants], fill };
  return {
    chunkShape,
    chunks: { kind: "made", recipe },
    codecs: [{ id: "vlen-utf8" }],
    compressorCount: 0,
    servedCompressor: { ...DEFAULT_COMPRESSOR, shuffle: 0 },
    // Strings that were never written are made, too.
    hasAbsent: false,
  };
}
