import { cfTimeFormatter, datetimeText } from "../cf/cf-time.js";
import {
  type DatasetPath,
  type DatasetSnapshot,
  type ServedArray,
  severalDatasets,
} from "../dataset/dataset.js";
import { coordinateOf } from "../dataset/overviews/level-grids.js";
import { ZpublishError } from "../errors.js";
import { type DataTree, elementCount, type Group, type Variable } from "../model/data-tree.js";
import type { Values } from "../values/values.js";

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

/** Coordinate values of one dimension, in its order. */
type AxisValues =
  /** Missing ones are NaN. */
  | { readonly kind: "numbers"; readonly values: readonly number[] }
  /** ISO dates of the coordinate's own calendar, with years of four digits and with seconds. Other texts are in no range. */
  | { readonly kind: "dates"; readonly values: readonly string[] };

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
 * Returns the runs of indices whose values are in a range, in any order of the values. Both bounds are included; a date without a day
 * or time stands for all of its month or day, as in xarray.
 * @returns A text with the problem if the range is of dates and the values are numbers, or the reverse.
 */
export function runsOfValues(range: ValueRange, axis: AxisValues): readonly Run[] | string {
  if (axis.kind === "dates") {
    const { low = "", high = "9" } = range;
    const wrong = [range.low, range.high].find((text) => text !== undefined && !ISO_DATE.test(text));
    if (wrong !== undefined) return `expected dates such as 2013-01-31, received ${wrong}`;
    const [least, greatest] = low <= high.padEnd(low.length, "9") ? [low, high] : [high, low];
    return runsOf(
      axis.values,
      (text) => /^\d{4}-/.test(text) && text >= least && text.slice(0, greatest.length) <= greatest,
    );
  }
  const low = Number(range.low ?? Number.NEGATIVE_INFINITY);
  const high = Number(range.high ?? Number.POSITIVE_INFINITY);
  if (Number.isNaN(low) || Number.isNaN(high))
    return `expected numbers, received ${Number.isNaN(low) ? range.low : range.high}`;
  return runsOf(axis.values, (value) => value >= Math.min(low, high) && value <= Math.max(low, high));
}

function runsOf<T>(values: readonly T[], isIn: (value: T) => boolean): readonly Run[] {
  const runs: Run[] = [];
  let begin = -1;
  for (let index = 0; index <= values.length; index++) {
    const isInside = index < values.length && isIn(values[index] as T);
    if (isInside && begin < 0) begin = index;
    if (isInside || begin < 0) continue;
    runs.push({ begin, end: index });
    begin = -1;
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
}

/** Reads the values of a coordinate. */
type ReadAxis = (coordinate: ServedArray) => Promise<AxisValues>;

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
 * @param onFound Called for each range that is looked up, with the dimension's extent if nothing lies in it.
 * @param datasetPath Paths of datasets in URLs.
 */
export async function selectTargets(
  snapshot: DatasetSnapshot,
  { variables, ranges }: WarmSelection,
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
    const groupPath = groupPathOf(variable);
    // Clients read the coordinate of a dimension whole.
    const isWhole = dims.length === 1 && dims[0] === name;
    const runs = await Promise.all(
      dims.map((dim, axis) => (isWhole ? undefined : findRuns(dim, groupPath, shape[axis]!))),
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
        const length = fine.shape[axis]!;
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
    if (array === undefined || coordinate?.shape[0] !== length)
      return refuse(range, "expected a coordinate of that name, received none; choose indices by --isel");
    const axis = await readAxis(array);
    const runs = runsOfValues(range, axis);
    if (typeof runs === "string") return refuse(range, runs);
    onFound(range, runs.length > 0 ? undefined : `dataset '${id}' has ${extentOf(axis)}`);
    return runs;
  }

  function refuse({ dim }: ValueRange, reason: string): readonly Run[] {
    problem(`dataset '${id}', dimension '${dim}': ${reason}`);
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

/** Writes the first and the last value of an axis. */
function extentOf({ values }: AxisValues): string {
  return values.length === 0 ? "none" : `${values[0]} to ${values.at(-1)}`;
}

function groupPathOf({ path, name }: Variable): string {
  return `/${path.slice(0, Math.max(0, path.length - name.length - 1))}`;
}

/** Bound of a coordinate, uncompressed. */
const MAX_BYTES = 256 * 2 ** 20;

/**
 * Reads all values of a coordinate of one dimension: dates if it counts time (CF section 4.4) or is a `datetime64`, else unpacked numbers.
 * @throws ZpublishError `unsupported` if its values are neither; what reading it throws
 */
export async function readAxis(array: ServedArray, values: Pick<Values, "read">): Promise<AxisValues> {
  const { dataType, attrs, path, shape } = array.variable;
  const whole = shape.map((count) => ({ begin: 0, count, step: 1 }));
  const block =
    "iufM".includes(dataType.kind) &&
    (await values.read(undefined, array, whole, { decode: true, maxBytes: MAX_BYTES }));
  if (!block || block.values === undefined)
    throw new ZpublishError(
      "unsupported",
      `'${path}': expected numbers or times, received ${dataType.numpyStr}`,
    );
  const numbers = Array.from(block.values as ArrayLike<number | bigint>);
  const { kind, timeUnit = "generic" } = dataType;
  if (kind === "M") {
    const dates = numbers.map((value) => withSeconds(datetimeText(BigInt(value), timeUnit)));
    return { kind: "dates", values: dates };
  }
  const formatTime = cfTimeFormatter(attrs);
  if (formatTime !== undefined) return { kind: "dates", values: numbers.map((value) => formatTime(value)) };
  return { kind: "numbers", values: numbers.map(Number) };
}

/** Writes a date as precise as its unit to the second: `2000-01` → `2000-01-01T00:00:00`. */
function withSeconds(text: string): string {
  return /^\d{4}(-|$)/.test(text) ? text + "0000-01-01T00:00:00".slice(text.length) : text;
}
