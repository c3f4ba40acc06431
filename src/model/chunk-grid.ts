/** Chunks per axis: `ceil(shape / chunkShape)`; an axis of length 0 has none, a scalar's grid is `[]` (one chunk). */
export function gridShapeOf(shape: readonly number[], chunkShape: readonly number[]): number[] {
  return shape.map((length, axis) => Math.ceil(length / (chunkShape[axis] as number)));
}

/** Product of all entries; 1 for a scalar. Elements of a shape, or chunks of a grid shape. */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const length of shape) count *= length;
  return count;
}
