import type { ShowRequest } from "../../protocol.js";
import {
  chooseResolution,
  costOf,
  isTooMuch,
  mostChunks,
  type Resolution,
  resolutionsOf,
} from "../array-reader.js";
import type { DatasetSession } from "../dataset-session.js";
import type { PicturePlan, PlannedChunk } from "./picture.js";

/** Which chunks in view are read: every n-th along each axis, which stand for those beside them, and of these the ones in the middle. */
export interface ChunkChoice {
  readonly everyRow: number;
  readonly everyColumn: number;
  /** Most rows and columns of chunks, about the middle of the picture. */
  readonly maxRows: number;
  readonly maxColumns: number;
}

const ALL: ChunkChoice = { everyRow: 1, everyColumn: 1, maxRows: Infinity, maxColumns: Infinity };

/** Chunks of one resolution that are in view. */
export interface ChunksInView {
  /** Rows and columns of chunks. */
  readonly rows: number;
  readonly columns: number;
  /** Pixels that a chunk covers along both axes, a fraction if it is thinner than one. */
  readonly height: number;
  readonly width: number;
  /** Chunks of each row and column: several if the bands of an image lie in chunks of their own. */
  readonly depth: number;
  plan(choice: ChunkChoice): readonly PlannedChunk[];
}

/** Pixels from one place of a list to the next in the array: no chunk stands for others, and none is their centre. */
export const FAR = 1e9;
/** Most chunks that are looked up one by one to see which of them are kept. */
const MAX_LOOKED_UP = 2 ** 13;
/** Most pixels from a cell to the one that stands for it: beyond, the centre shows more than every n-th chunk. */
const MAX_DISPLACEMENT = 24;

/**
 * Settles what is read: the coarsest resolution with a cell per pixel, or a coarser one if that is too much; if all are too much, a part
 * of the coarsest. `densities` are cells per pixel.
 */
export function settleReading(
  session: DatasetSession,
  { selection, axes, isConfirmed }: ShowRequest,
  densities: { readonly x: number; readonly y: number },
  chunksOf: (resolution: Resolution) => ChunksInView,
): Pick<PicturePlan, "resolution" | "chunks" | "cost" | "part" | "draft"> {
  const variable = session.variable(selection.variable);
  const resolutions = resolutionsOf(variable);
  const costAt = ({ chunkShape }: Resolution, chunks: number) =>
    costOf(chunks, chunkShape, variable.dataType.itemSize);
  for (let index = chooseResolution(resolutions, axes, densities); ; index++) {
    const resolution = resolutions[index]!;
    const inView = chunksOf(resolution);
    let total = inView.rows * inView.columns * inView.depth;
    if (isConfirmed || total <= MAX_LOOKED_UP) {
      const chunks = inView.plan(ALL);
      total = chunks.length;
      const unread = chunks.filter(({ job }) => !session.queue.has(job.key)).length;
      const cost = costAt(resolution, unread);
      const draft = draftOf(inView, ALL, unread);
      if (isConfirmed || !isTooMuch(cost)) return { resolution, chunks, cost, part: undefined, draft };
    }
    if (index < resolutions.length - 1) continue;
    const most = mostChunks(costAt(resolution, 1));
    const places = Math.max(1, Math.floor(most / inView.depth));
    const chosen = choosePart(inView, places);
    const chunks = inView.plan(chosen.choice).slice(0, places * inView.depth);
    const { everyRow, everyColumn } = chosen.choice;
    const isSingle = (axis: number) => resolution.chunkShape[axis] === 1 && resolution.factors[axis] === 1;
    const [isOfRows, isOfColumns] = [isSingle(axes.y), isSingle(axes.x)];
    const whole = costAt(resolution, total);
    const part = { everyRow, everyColumn, share: chosen.share, whole, isOfRows, isOfColumns };
    const draft = part.share < 1 ? [] : draftOf(inView, chosen.choice, chunks.length);
    return { resolution, chunks, cost: costAt(resolution, chunks.length), part, draft };
  }
}

/** Chunks up to which a picture comes so soon that it needs no draft. */
const FEW_CHUNKS = 150;
/** Most pixels that one chunk of a draft stands for, along an axis. */
const MAX_DRAFT_PIXELS = 96;
/** Rows or columns of chunks that are all in a draft. */
const FEW_ROWS = 4;

/**
 * Returns the chunks of a picture that are read before the others, and stand for them until then; none if it is soon read. Of an odd
 * number of chosen neighbours, the one in their middle is among those chosen.
 */
function draftOf(inView: ChunksInView, choice: ChunkChoice, unread: number): readonly PlannedChunk[] {
  const { rows, columns, height, width } = inView;
  const [perRow, perColumn] = columns <= FEW_ROWS ? [9, 1] : rows <= FEW_ROWS ? [1, 9] : [3, 3];
  const [everyRow, everyColumn] = [choice.everyRow * perRow, choice.everyColumn * perColumn];
  const pixels = Math.max(perRow === 1 ? 0 : everyRow * height, perColumn === 1 ? 0 : everyColumn * width);
  const isWorthwhile = unread > FEW_CHUNKS && pixels <= MAX_DRAFT_PIXELS;
  return isWorthwhile ? inView.plan({ ...choice, everyRow, everyColumn }) : [];
}

/**
 * Chooses at most so many chunks: every n-th if those that stand for others are near enough on the screen, else the ones in the middle.
 * Returns the share of the picture's width and height that is read, too.
 */
function choosePart({ rows, columns, height, width }: ChunksInView, most: number) {
  if (height >= FAR) return { choice: ALL, share: 1 };
  let [everyRow, everyColumn] = [1, 1];
  while (Math.ceil(rows / everyRow) * Math.ceil(columns / everyColumn) > most) {
    // The axis along which chunks lie closer together.
    if (everyColumn >= columns || (everyRow < rows && everyRow * height <= everyColumn * width)) everyRow++;
    else everyColumn++;
  }
  // A row of pixels shows one row of cells: more need not be read.
  if (everyRow > 1) everyRow = Math.max(everyRow, Math.floor(1 / height));
  if (everyColumn > 1) everyColumn = Math.max(everyColumn, Math.floor(1 / width));
  const displacement = Math.max((everyRow - 1) * height, (everyColumn - 1) * width) / 2;
  if (displacement <= MAX_DISPLACEMENT) return { choice: { ...ALL, everyRow, everyColumn }, share: 1 };
  // A box with this share of both sides meets at most `most` chunks, wherever it begins.
  const [area, sides] = [rows * columns, rows + columns];
  const share = (Math.sqrt(sides * sides + 4 * area * (most - 1)) - sides) / (2 * area);
  const [maxRows, maxColumns] = [rows, columns].map((count) => Math.max(1, Math.ceil(share * count)));
  const choice = { ...ALL, maxRows: maxRows!, maxColumns: maxColumns! };
  return { choice, share: Math.max(share, 0.5 / Math.max(rows, columns)) };
}

/** Returns a function from a cell to the nearest one in a chunk that is read: of `every` neighbours the one in their middle. */
export function standInOf(length: number, chunkLength: number, every: number): (cell: number) => number {
  if (every === 1) return (cell) => cell;
  const last = Math.ceil(length / chunkLength) - 1;
  const lastGroup = Math.floor(last / every);
  return (cell) => {
    const own = Math.floor(cell / chunkLength / every);
    let [nearest, least] = [0, Number.POSITIVE_INFINITY];
    for (const group of [own, Math.max(0, own - 1), Math.min(lastGroup, own + 1)]) {
      const begin = Math.min(last, group * every + (every >> 1)) * chunkLength;
      const found = Math.max(begin, Math.min(cell, Math.min(begin + chunkLength, length) - 1));
      if (Math.abs(found - cell) < least) [nearest, least] = [found, Math.abs(found - cell)];
    }
    return nearest;
  };
}

/** Returns the items in the middle of a list, at most so many. */
export function middleOf<T>(items: readonly T[], most: number): readonly T[] {
  const left = Math.max(0, Math.floor((items.length - most) / 2));
  return items.slice(left, left + Math.min(items.length, most));
}
