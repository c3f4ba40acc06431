import type { EncodingConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import type { EncodingRequest } from "../zarr/plan/create-encoding-plan.js";

/** An array for which an encoding is asked. */
export interface EncodingTarget {
  readonly path: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Chunk lengths of dimensions that are not named. */
  readonly chunkShape: readonly number[];
}

/**
 * Resolves the encoding that is asked of one array: the variable's own over the dataset's. Converts chunks by dimension
 * name to chunks by axis.
 * @throws ZpublishError `unsupported`, naming the array, if `chunks` do not fit its dimensions.
 */
export function resolveEncoding(
  target: EncodingTarget,
  ofDataset: EncodingConfig,
  ofVariable: EncodingConfig | undefined,
): EncodingRequest {
  const { chunks, ...codecs } = { ...ofDataset, ...ofVariable };
  if (chunks === undefined) return codecs;
  // A dataset's `encoding` may name dimensions that not every array has; a variable's own must fit.
  const mustFit = ofVariable?.chunks !== undefined;
  return { ...codecs, chunkShape: chunkShapeOf(target, chunks, mustFit) };
}

function chunkShapeOf(
  { path, dims, shape, chunkShape }: EncodingTarget,
  chunks: NonNullable<EncodingConfig["chunks"]>,
  mustFit: boolean,
): number[] {
  const wholeAxis = (axis: number) => Math.max(1, shape[axis] as number);
  if (isList(chunks)) {
    if (chunks.length !== dims.length) {
      throw new ZpublishError(
        "unsupported",
        `array '${path}': chunks: expected a length for each of (${dims.join(", ")}), received ${chunks.length}`,
      );
    }
    return chunks.map((length, axis) => (length === -1 ? wholeAxis(axis) : length));
  }
  const unknown = Object.keys(chunks).filter((name) => !dims.includes(name));
  if (mustFit && unknown.length > 0) {
    throw new ZpublishError(
      "unsupported",
      `array '${path}': chunks: expected dimension names among ${dims.join(", ")}, received ${unknown.join(", ")}`,
    );
  }
  return dims.map((name, axis) => {
    const length = Object.hasOwn(chunks, name) ? chunks[name] : undefined;
    if (length === undefined) return chunkShape[axis] as number;
    return length === -1 ? wholeAxis(axis) : length;
  });
}

function isList(chunks: NonNullable<EncodingConfig["chunks"]>): chunks is readonly number[] {
  return Array.isArray(chunks);
}
