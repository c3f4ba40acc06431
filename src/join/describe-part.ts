import { ZpublishError } from "../errors.js";
import { nameDimensions } from "../model/data-tree.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { StoredTree } from "../zarr/stored-tree.js";
import type { PartArray, PartDescription } from "./part-description.js";
import { coordinateProblem, readCoordinate } from "./read-coordinate.js";

/**
 * Describes a part, and reads the values of its coordinates. A coordinate that is too long, or that cannot be decoded, has no values,
 * unless it is that of the joined dimension, which has to be read.
 * @param name As in `PartDescription`.
 * @param dimension The joined dimension, if parts have it.
 * @throws ZpublishError `unsupported` if that of the joined dimension cannot be read; the error of a failed read
 */
export async function describePart(
  name: string,
  tree: StoredTree,
  dimension: string | undefined,
): Promise<PartDescription> {
  const arrays: PartArray[] = [];
  for (const group of tree.groups) {
    const dims = nameDimensions(group.arrays);
    for (const [index, array] of group.arrays.entries())
      arrays.push(await describeArray(array, dims[index] as string[], dimension));
  }
  const groups = tree.groups.map(({ path, attrs }) => ({ path, attrs }));
  return { name, groups, arrays, refused: tree.refused };
}

async function describeArray(
  array: StoredArray,
  dims: readonly string[],
  dimension: string | undefined,
): Promise<PartArray> {
  const { chunks: _chunks, v3: _v3, ...stored } = array;
  const [dim] = dims;
  const isCoordinate = dims.length === 0 || (dims.length === 1 && (dim === dimension || dim === array.name));
  if (!isCoordinate) return { stored, dims };
  const problem = coordinateProblem(array);
  if (problem === undefined) return { stored, dims, values: await readCoordinate(array) };
  if (dim === undefined || dim !== dimension || array.name !== dimension) return { stored, dims };
  throw new ZpublishError("unsupported", `'${array.path}': ${problem}`);
}
