import { type CoordinateAxis, extentText, indexRange, type Steps } from "../cf/axis-labels.js";
import {
  type DatasetPath,
  type DatasetSnapshot,
  type ServedArray,
  severalDatasets,
} from "../dataset/dataset.js";
import { coordinateOf } from "../dataset/overviews/level-grids.js";
import { ZpublishError } from "../errors.js";
import { type DataTree, elementCount, type Group, parentPath, type Variable } from "../model/data-tree.js";

/** A range of a dimension, as an operator writes it. */
export type DimensionRange = IndexRange | ValueRange;

/** A range of indices: `time=0:100`. The end is not part of it; negative numbers count from the end. */
interface IndexRange {
  readonly by: "index";
  readonly dim: string;
  /** Undefined for the beginning. */
  readonly begin: number | undefined;
  /** Undefined for the end of the dimension. */
  readonly end: number | undefined;
}

/** A range of coordinate values, both ends included: `time=2013-01:2013-02`, `lat=30:50`. */
interface ValueRange {
  readonly by: "value";
  readonly dim: string;
  /** A number or a date as text. Undefined if there is no bound. */
  readonly low: string | undefined;
  readonly high: string | undefined;
}

/** Indices from `begin` up to but not including `end`. */
interface Run {
  readonly begin: number;
  readonly end: number;
}

const INDEX = /^([^=]+)=(-?\d{1,15})?(:(-?\d{1,15})?)?$/;
const DATE = String.raw`\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?Z?)?)?)?`;
const NUMBER = String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?`;
const VALUES = new RegExp(`^([^=]+)=(${DATE}|${NUMBER})?(:(${DATE}|${NUMBER})?)?$`, "i");
const ISO_DATE = new RegExp(`^(?:${DATE})$`);

/** Parses `DIM=BEGIN:END` or `DIM=INDEX`; undefined if the text is neither. */
export function parseIndexRange(text: string): IndexRange | undefined {
  const match = INDEX.exec(text);
  const [, dim, first, rest, last] = match ?? [];
  if (dim === undefined || (first === undefined && rest === undefined)) return undefined;
  const begin = first === undefined ? undefined : Number(first);
  if (rest !== undefined)
    return { by: "index", dim, begin, end: last === undefined ? undefined : Number(last) };
  // The last index is followed by the end, not by index 0.
  return { by: "index", dim, begin, end: begin === -1 ? undefined : Number(begin) + 1 };
}

/** Parses `DIM=LOW:HIGH` or `DIM=VALUE` of numbers or ISO dates, which may be years or months; undefined if the text is neither. */
export function parseValueRange(text: string): ValueRange | undefined {
  const match = VALUES.exec(text);
  const [, dim, first, rest, last] = match ?? [];
  if (dim === undefined || (first === undefined && rest === undefined)) return undefined;
  const low = first && normalise(first);
  return { by: "value", dim, low, high: rest === undefined ? low : last && normalise(last) };
}

/** Writes a range without its dimension, as an operator may have written it: `30:50`, `-24:`, `2013`. */
export function textOfRange(range: DimensionRange): string {
  const [begin, end] = range.by === "index" ? [range.begin, range.end] : [range.low, range.high];
  return begin === end ? String(begin) : `${begin ?? ""}:${end ?? ""}`;
}

function normalise(text: string): string {
  return ISO_DATE.test(text) ? text.replace(" ", "T").replace(/Z$/i, "") : text;
}

/** Returns the indices of a range in a dimension of this length. */
export function runOfIndices({ begin = 0, end }: IndexRange, length: number): Run {
  const from = (index: number): number => Math.min(Math.max(index < 0 ? length + index : index, 0), length);
  const first = from(begin);
  return { begin: first, end: Math.max(first, end === undefined ? length : from(end)) };
}

/** Returns the runs in a coarser dimension whose indices each stand for `factor` indices of the finer one. */
export function coarserRuns(runs: readonly Run[], factor: number): readonly Run[] {
  return runs.map(({ begin, end }) => ({ begin: Math.floor(begin / factor), end: Math.ceil(end / factor) }));
}

/**
 * Returns the runs of indices whose values are in a range, both bounds included, in either order; an open bound is the least or the
 * greatest value. A date without a day or time stands for all of its month or day, and longitudes are equal modulo 360.
 * @throws ZpublishError `invalid-query` if the values are of another kind than the bounds, or in no order
 */
export function runsOfValues(
  { low, high }: Pick<ValueRange, "low" | "high">,
  axis: CoordinateAxis,
): readonly Run[] {
  const { values, length, calendar } = axis;
  const isDescending = calendar === undefined && values !== undefined && values[0]! > values[length - 1]!;
  const [first, last] = isDescending ? [high, low] : [low, high];
  const runs = runsOf(indexRange(axis, first, last));
  return runs.length > 0 || low === undefined || high === undefined || axis.isLongitude
    ? runs
    : runsOf(indexRange(axis, last, first));
}

function runsOf(steps: Steps): readonly Run[] {
  if (!("indexes" in steps))
    return steps.count === 0 ? [] : [{ begin: steps.begin, end: steps.begin + steps.count }];
  const runs: Run[] = [];
  for (const index of steps.indexes.toSorted((a, b) => a - b)) {
    const last = runs.at(-1);
    if (last?.end === index) runs[runs.length - 1] = { begin: last.begin, end: index + 1 };
    else runs.push({ begin: index, end: index + 1 });
  }
  return runs;
}

/** Returns the chunks of an axis that hold any of these indices, ascending. */
export function chunksOfRuns(runs: readonly Run[], chunkLength: number): number[] {
  const chunks = new Set<number>();
  for (const { begin, end } of runs) {
    if (begin === end) continue;
    const last = Math.floor((end - 1) / chunkLength);
    for (let chunk = Math.floor(begin / chunkLength); chunk <= last; chunk++) chunks.add(chunk);
  }
  return [...chunks].sort((a, b) => a - b);
}

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
}

/** Selection of variables, and of parts of their dimensions. */
interface WarmSelection {
  /** Paths of variables, and of groups of which all variables are meant. Empty: every variable. */
  readonly variables: readonly string[];
  /** At most one for each dimension counts: the last. */
  readonly ranges: readonly DimensionRange[];
  /** Names of further encodings, of which alone chunks are meant. Empty: those of the dataset, of all its encodings and its overviews. */
  readonly encodings: readonly string[];
}

/** Reads the values of a coordinate. */
type ReadAxis = (coordinate: ServedArray) => Promise<CoordinateAxis>;

/** Finds the selected indices of a dimension in a group; undefined if all are. */
type FindRuns = (dim: string, groupPath: string, length: number) => Promise<readonly Run[] | undefined>;

/** Bytes assumed for an item without a fixed size. */
const EXPECTED_ITEM_BYTES = 16;

/**
 * Chooses the chunks of a dataset: coordinates of a group before its other variables, encodings and overviews behind
 * what they are made of.
 * Coordinates of what is selected are always part of it, those of dimensions whole.
 * @returns No targets if the dataset has none of the variables.
 * @throws ZpublishError if a coordinate cannot be read
 * @param problem Takes a problem with a range, such as of a dimension without coordinate.
 * @param onFound Called for each range that is looked up, with the dimension's extent if nothing lies in it.
 * @param datasetPath Paths of datasets in URLs.
 */
export async function selectTargets(
  snapshot: DatasetSnapshot,
  { variables, ranges, encodings }: WarmSelection,
  readAxis: ReadAxis,
  problem: (text: string) => void,
  onFound: (range: DimensionRange, extent: string | undefined) => void,
  datasetPath: DatasetPath = severalDatasets,
): Promise<WarmTarget[]> {
  const path = datasetPath(snapshot.id);
  const wanted = wantedVariables(snapshot.tree, variables);
  const findRuns = createFinder(snapshot, ranges, readAxis, problem, onFound);
  const targets: WarmTarget[] = [];
  for (const variable of wanted) {
    const { dims, shape, name } = variable;
    const groupPath = parentPath(`/${variable.path}`);
    // Clients read the coordinate of a dimension whole.
    const isWhole = dims.length === 1 && dims[0] === name;
    const runs = await Promise.all(
      dims.map((dim, axis) => (isWhole ? undefined : findRuns(dim, groupPath, shape[axis]!))),
    );
    if (encodings.length === 0) addTarget(targets, snapshot, `${path}zarr/`, variable, runs);
    for (const [name, encoded] of snapshot.encodings ?? []) {
      if (encodings.length === 0 || encodings.includes(name))
        addTarget(targets, encoded, `${path}encodings/${name}/zarr/`, variable, runs);
    }
  }
  const { overviews } = snapshot;
  if (overviews?.levels === undefined || encodings.length > 0) return targets;
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
        const length = fine.shape[axis]!;
        const found = isWhole ? undefined : await findRuns(dim, parentPath(`/${fine.path}`), length);
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
    yield axes.map((axis, index) => axis[at[index]!]).join(".") || "0";
    let axis = axes.length - 1;
    while (axis >= 0 && ++at[axis]! === axes[axis]?.length) at[axis--] = 0;
    if (axis < 0) return;
  }
}

function addTarget(
  targets: WarmTarget[],
  snapshot: DatasetSnapshot,
  prefix: string,
  { path, dataType }: Variable,
  runs: readonly (readonly Run[] | undefined)[],
): void {
  const array = snapshot.arrays.get(path);
  // A variable that cannot be served is in the tree no more.
  if (array === undefined) return;
  const { chunkShape } = array.variable;
  const { gridShape } = array.plan.served;
  const axes = gridShape.map((length, axis) => {
    const found = runs[axis];
    return found === undefined
      ? Array.from({ length }, (_, index) => index)
      : chunksOfRuns(found, chunkShape[axis]!);
  });
  const count = axes.reduce((product, axis) => product * axis.length, 1);
  const chunkBytes = elementCount(chunkShape) * (dataType.itemSize || EXPECTED_ITEM_BYTES);
  if (count > 0) targets.push({ snapshot, array, path: `${prefix}${path}/`, axes, count, chunkBytes });
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
  onFound: (range: DimensionRange, extent: string | undefined) => void,
): FindRuns {
  const known = new Map<string, Promise<readonly Run[]>>();

  async function find(range: DimensionRange, group: Group, length: number): Promise<readonly Run[]> {
    if (range.by === "index") {
      const run = runOfIndices(range, length);
      onFound(range, run.begin < run.end ? undefined : `dataset '${id}' has 0 to ${length - 1}`);
      return [run];
    }
    const coordinate = coordinateOf(tree, group, range.dim);
    const array = coordinate && arrays.get(coordinate.path);
    if (array === undefined || coordinate?.shape[0] !== length) {
      const expected = "expected a coordinate of that name, received none; choose indices by --isel";
      problem(`dataset '${id}', dimension '${range.dim}': ${expected}`);
      return [];
    }
    const axis = await readAxis(array);
    let runs: readonly Run[];
    try {
      runs = runsOfValues(range, axis);
    } catch (error) {
      if (!(error instanceof ZpublishError && error.code === "invalid-query")) throw error;
      problem(`dataset '${id}': ${error.message}`);
      return [];
    }
    onFound(range, runs.length > 0 ? undefined : `dataset '${id}' has ${extentText(axis)}`);
    return runs;
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
