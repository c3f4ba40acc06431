import { elementCount } from "../model/chunk-grid.js";
import { type ChunkPiece, type PartChunks, PIECED } from "../zarr/part-chunks.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { StoredTree } from "../zarr/stored-tree.js";
import { formatCodec, formatShape } from "./format-text.js";

/** Chunks of an array of a joined dataset. */
export interface InspectedPieces {
  /** Chunks that are served as a file has them. */
  readonly passed: number;
  /** Chunks that are put together from chunks of files. */
  readonly joined: number;
  /** Why chunks are put together, from the first of them. Empty if none is. */
  readonly reasons: readonly string[];
}

/** Chunks put together of which the reason is found: it opens their files. */
const MAX_SAMPLES = 4;

/**
 * Counts the chunks of the arrays of a joined dataset, by path. Arrays that are no parts of files one behind the other are left out.
 * @throws ZpublishError `source-unreadable`, naming the file
 */
export async function inspectPieces({ groups }: StoredTree): Promise<ReadonlyMap<string, InspectedPieces>> {
  const found = new Map<string, InspectedPieces>();
  for (const array of groups.flatMap(({ arrays }) => arrays)) {
    // Those of one part have no such axis.
    if (array.chunks.kind === "parts" && array.chunks.axis >= 0)
      found.set(array.path, await piecesOfArray(array, array.chunks));
  }
  return found;
}

async function piecesOfArray(array: StoredArray, { axis, openReader }: PartChunks): Promise<InspectedPieces> {
  const reader = openReader();
  const gridShape = array.shape.map((length, index) =>
    Math.ceil(length / (array.chunkShape[index] as number)),
  );
  const length = gridShape[axis] as number;
  // A chunk is passed through or not with all others of the same steps.
  const coordsOf = (index: number) => gridShape.map((_, each) => (each === axis ? index : 0));
  const joined: number[] = [];
  for (let index = 0; index < length; index++) {
    if (reader.variantOf(coordsOf(index)) === PIECED) joined.push(index);
  }
  const across = elementCount(gridShape.filter((_, each) => each !== axis));
  const samples = await Promise.all(
    joined.slice(0, MAX_SAMPLES).map((index) => reader.piecesOf(coordsOf(index))),
  );
  return {
    passed: (length - joined.length) * across,
    joined: joined.length * across,
    reasons: reasonsOf(array, axis, samples.flat(), joined.length < length),
  };
}

/** @param isPassed Whether other chunks of the array are passed through: then these have its chunk length and codecs. */
function reasonsOf(
  array: StoredArray,
  axis: number,
  pieces: readonly ChunkPiece[],
  isPassed: boolean,
): string[] {
  if (pieces.length === 0) return [];
  const own = isPassed ? [array] : [];
  const layouts = pieces.map(({ layout }) => layout);
  const reasons: string[] = [];
  const differ = (what: string, texts: readonly string[]): void => {
    const distinct = [...new Set(texts)];
    if (distinct.length > 1) reasons.push(`${what} differ: ${listOf(distinct)}`);
  };
  const shapes = [...own, ...layouts].map(({ chunkShape }) => chunkShape);
  const across = shapes.map((shape) => shape.filter((_, each) => each !== axis).join());
  if (new Set(across).size > 1) differ("chunk shapes", shapes.map(formatShape));
  else
    differ(
      "chunk lengths",
      shapes.map((shape) => String(shape[axis])),
    );
  const codecs = layouts.map(({ decode }) => decode.map(({ codec }) => formatCodec(codec)).toReversed());
  differ(
    "codecs",
    [...own.map((each) => each.codecs.map(formatCodec)), ...codecs].map((each) => each.join(" → ") || "none"),
  );
  differ(
    "orders of axes",
    [...own, ...layouts].map(({ axisOrder }) => formatShape(axisOrder)),
  );
  if (layouts.some(({ conversion }) => conversion !== undefined)) reasons.push("values are converted");
  return reasons.length > 0 ? reasons : ["files begin or end within chunks"];
}

const MAX_LISTED = 3;

function listOf(texts: readonly string[]): string {
  const shown = texts.slice(0, MAX_LISTED);
  const rest = texts.length - shown.length;
  if (rest > 0) return `${shown.join(", ")} and ${rest} more`;
  return `${shown.slice(0, -1).join(", ")} and ${shown.at(-1)}`;
}
