import type { DataTree, Variable } from "../../model/data-tree.js";

/** Cells along an axis of the coarsest level at most, if chunks are longer: as many as a screen shows. */
const MAX_CELLS = 1_024;
/** Most levels, as of the option. */
export const MAX_LEVELS = 16;

/**
 * Counts the coarser levels of a dataset.
 * @param asked `auto` for as many as it takes until the planes of all data variables fit one chunk.
 * @param horizontal Dimensions that are coarsened. There is no level in which nothing would get coarser.
 */
export function levelCount(tree: DataTree, horizontal: ReadonlySet<string>, asked: number | "auto"): number {
  const axes = horizontalAxes(tree, horizontal);
  const most = Math.max(0, ...axes.map(({ length }) => levelsUntil(length, 1)));
  const wanted =
    asked === "auto" ? Math.max(0, ...axes.map(({ length, end }) => levelsUntil(length, end))) : asked;
  return Math.min(wanted, most, MAX_LEVELS);
}

/** Returns the length of an axis in a level: half of that of the level below, rounded up. */
export function lengthAt(length: number, level: number): number {
  return Math.ceil(length / 2 ** level);
}

function levelsUntil(length: number, end: number): number {
  let level = 0;
  while (lengthAt(length, level) > end) level++;
  return level;
}

/** Lists lengths of horizontal axes, and the cells at which a level is coarse enough: of planes, of other arrays if there are none. */
function horizontalAxes(tree: DataTree, horizontal: ReadonlySet<string>) {
  const planes: { length: number; end: number }[] = [];
  const others: { length: number; end: number }[] = [];
  for (const { variables, coordinateNames } of tree.groups.values()) {
    for (const variable of variables.values()) {
      const axes = axesOf(variable, horizontal);
      const isPlane = axes.length >= 2 && !coordinateNames.has(variable.name);
      (isPlane ? planes : others).push(...axes);
    }
  }
  return planes.length > 0 ? planes : others;
}

function axesOf({ dims, shape, chunkShape }: Variable, horizontal: ReadonlySet<string>) {
  return dims.flatMap((dim, axis) =>
    horizontal.has(dim)
      ? [{ length: shape[axis] as number, end: Math.max(1, Math.min(chunkShape[axis] as number, MAX_CELLS)) }]
      : [],
  );
}
