import {
  type DatasetPath,
  type DatasetSnapshot,
  type ServedArray,
  severalDatasets,
} from "../dataset/dataset.js";
import { coordinateOf } from "../dataset/overviews/level-grids.js";
import { type DataTree, elementCount, type Group, type Variable } from "../model/data-tree.js";
import {
  type AxisValues,
  chunksOfRuns,
  coarserRuns,
  type DimensionRange,
  type Run,
  runOfIndices,
  runsOfValues,
} from "./dimension-range.js";

/** Chunks of one variable that are warmed. */
export interface WarmTarget {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  /** Decoded path of its chunks, without the root path: `/datasets/air/zarr/t2m/`. */
  readonly path: string;
  /** Indices of the chunks by axis. */
  readonly axes: readonly (readonly number[])[];
  /** Number of chunks. */
  readonly count: number;
  /** Decoded bytes of one chunk. */
  readonly chunkBytes: number;
  /** Whether chunks are made of those of another level, which are warmed, too. One of a high level takes thousands. */
  readonly isOfLevel: boolean;
}

/** Selection of variables, and of parts of their dimensions. */
export interface WarmSelection {
  /** Paths of variables, and of groups of which all variables are meant. Empty: every variable. */
  readonly variables: readonly string[];
  /** At most one for each dimension counts: the last. */
  readonly ranges: readonly DimensionRange[];
}

/** Reads the values of a coordinate. */
export type ReadAxis = (coordinate: ServedArray) => Promise<AxisValues>;

/** Finds the selected indices of a dimension in a group; undefined if all are. */
type FindRuns = (dim: string, groupPath: string, length: number) => Promise<readonly Run[] | undefined>;

/** Bytes assumed for an item without a fixed size. */
const EXPECTED_ITEM_BYTES = 16;

/**
 * Chooses the chunks of a dataset: coordinates of a group before its other variables, overviews behind what they are made of.
 * Coordinates of what is selected are always part of it, those of dimensions whole.
 * @returns No targets if the dataset has none of the variables.
 * @throws ZpublishError if a coordinate cannot be read
 * @param problem Takes a problem with a range, such as of a dimension without coordinate.
 * @param datasetPath Paths of datasets in URLs.
 */
export async function selectTargets(
  snapshot: DatasetSnapshot,
  { variables, ranges }: WarmSelection,
  readAxis: ReadAxis,
  problem: (text: string) => void,
  datasetPath: DatasetPath = severalDatasets,
): Promise<WarmTarget[]> {
  const path = datasetPath(snapshot.id);
  const wanted = wantedVariables(snapshot.tree, variables);
  const findRuns = createFinder(snapshot, ranges, readAxis, problem);
  const targets: WarmTarget[] = [];
  for (const variable of wanted) {
    const { dims, shape, name } = variable;
    const groupPath = groupPathOf(variable);
    // Clients read the coordinate of a dimension whole.
    const isWhole = dims.length === 1 && dims[0] === name;
    const runs = await Promise.all(
      dims.map((dim, axis) => (isWhole ? undefined : findRuns(dim, groupPath, shape[axis] as number))),
    );
    addTarget(targets, snapshot, `${path}zarr/`, variable, runs);
  }
  const { overviews } = snapshot;
  if (overviews?.levels === undefined) return targets;
  const { horizontal } = overviews.levels;
  const byPath = new Map(wanted.map((variable) => [variable.path, variable]));
  for (const coarse of [...overviews.tree.groups.values()].flatMap((group) => [
    ...group.variables.values(),
  ])) {
    const [level = "", ...rest] = coarse.path.split("/");
    const fine = byPath.get(rest.join("/"));
    // Level 0 is the dataset itself.
    if (fine === undefined || level === "0") continue;
    const isWhole = fine.dims.length === 1 && fine.dims[0] === fine.name;
    const runs = await Promise.all(
      fine.dims.map(async (dim, axis) => {
        const length = fine.shape[axis] as number;
        const found = isWhole ? undefined : await findRuns(dim, groupPathOf(fine), length);
        return found && (horizontal.has(dim) ? coarserRuns(found, 2 ** Number(level)) : found);
      }),
    );
    addTarget(targets, overviews, `${path}overviews/zarr/`, coarse, runs);
  }
  return targets;
}

/** Lists the keys of the chunks of a target: `0.12.3`. */
export function* chunkKeys({ axes }: Pick<WarmTarget, "axes">): Generator<string> {
  if (axes.some((axis) => axis.length === 0)) return;
  const at = axes.map(() => 0);
  for (;;) {
    yield axes.map((axis, index) => axis[at[index] as number]).join(".") || "0";
    let axis = axes.length - 1;
    while (axis >= 0 && ++(at[axis] as number) === axes[axis]?.length) at[axis--] = 0;
    if (axis < 0) return;
  }
}

function addTarget(
  targets: WarmTarget[],
  snapshot: DatasetSnapshot,
  prefix: string,
  { path, chunkShape, dataType }: Variable,
  runs: readonly (readonly Run[] | undefined)[],
): void {
  const array = snapshot.arrays.get(path);
  // A variable that cannot be served is in the tree no more.
  if (array === undefined) return;
  const { gridShape } = array.plan.served;
  const axes = gridShape.map((length, axis) => {
    const found = runs[axis];
    return found === undefined
      ? Array.from({ length }, (_, index) => index)
      : chunksOfRuns(found, chunkShape[axis] as number);
  });
  const count = axes.reduce((product, axis) => product * axis.length, 1);
  const chunkBytes = elementCount(chunkShape) * (dataType.itemSize || EXPECTED_ITEM_BYTES);
  const isOfLevel = array.plan.source.kind === "served";
  if (count > 0)
    targets.push({ snapshot, array, path: `${prefix}${path}/`, axes, count, chunkBytes, isOfLevel });
}

/** Finds the variables that are selected, and the coordinates of their groups and of the groups above. */
function wantedVariables({ groups }: DataTree, paths: readonly string[]): Variable[] {
  const prefixes = paths.map((path) => path.replace(/^\/+|\/+$/g, ""));
  const isNamed = ({ path }: Variable) =>
    prefixes.length === 0 || prefixes.some((each) => each === "" || `${path}/`.startsWith(`${each}/`));
  const named = [...groups.values()].filter(({ variables }) => [...variables.values()].some(isNamed));
  return [...groups.values()].flatMap((group) => {
    const below = group.path === "/" ? "/" : `${group.path}/`;
    const isNeeded = named.some(({ path }) => `${path}/`.startsWith(below));
    const all = [...group.variables.values()];
    const isCoordinate = ({ name }: Variable) => isNeeded && group.coordinateNames.has(name);
    return [
      ...all.filter(isCoordinate),
      ...all.filter((variable) => isNamed(variable) && !isCoordinate(variable)),
    ];
  });
}

/** Creates a finder that looks each range up once per group. */
function createFinder(
  { tree, arrays, id }: DatasetSnapshot,
  ranges: readonly DimensionRange[],
  readAxis: ReadAxis,
  problem: (text: string) => void,
): FindRuns {
  const known = new Map<string, Promise<readonly Run[]>>();

  async function find(range: DimensionRange, group: Group, length: number): Promise<readonly Run[]> {
    if (range.by === "index") return [runOfIndices(range, length)];
    const coordinate = coordinateOf(tree, group, range.dim);
    const array = coordinate && arrays.get(coordinate.path);
    const runs =
      array === undefined || coordinate?.shape[0] !== length
        ? "expected a coordinate of that name, received none; choose indices by --isel"
        : runsOfValues(range, await readAxis(array));
    if (typeof runs !== "string") return runs;
    problem(`dataset '${id}', dimension '${range.dim}': ${runs}`);
    return [];
  }

  return async (dim, groupPath, length) => {
    const range = ranges.findLast((each) => each.dim === dim);
    if (range === undefined) return undefined;
    const key = JSON.stringify([groupPath, dim, length]);
    const found = known.get(key) ?? find(range, tree.groups.get(groupPath) as Group, length);
    known.set(key, found);
    return found;
  };
}

function groupPathOf({ path, name }: Variable): string {
  return `/${path.slice(0, Math.max(0, path.length - name.length - 1))}`;
}
