import type { CoordinateAxis } from "../cf/axis-labels.js";
import { axisRole } from "../cf/axis-roles.js";
import {
  type CellBox,
  type CellTree,
  cellBoxSteps,
  cellTreeSteps,
  type NearestCell,
  nearestCellSteps,
} from "../cf/cell-search.js";
import {
  createGridFinder,
  createPlacer,
  dimensionCoordinate,
  georeferenceOf,
  isLongitudes,
  variablesOf,
} from "../cf/placement.js";
import { decodeCoordinate, NO_COORDINATE } from "../codec/items/decode-coordinate.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { memoPromise } from "../event-loop/joined.js";
import type { Variable } from "../model/data-tree.js";
import { FIXED, versionInPlace } from "../open/chunk-reader.js";
import { combineStored, type StoredVersion } from "../zarr/chunk-reader.js";
import type { AxisSelection, Coordinates, CoordinateValues, GridCells, ValueBlock } from "./values.js";

/** Reads stored values. */
type ReadStored = (
  snapshot: DatasetSnapshot,
  array: ServedArray,
  selection: readonly AxisSelection[],
) => Promise<ValueBlock>;

/** Memory of latitudes and longitudes of cells that are kept for further look-ups. */
const MAX_CELL_BYTES = 512 * 2 ** 20;
/** Bytes of one cell: its latitude and longitude, a point, and its share of the balls around. */
const CELL_BYTES = 59;

/** Cells of a grid, and the tree in which the nearest one is found, made at the first call. */
interface Cells {
  readonly places: Omit<GridCells, "version">;
  readonly tree: () => Promise<CellTree>;
}

/** Creates what reads coordinates, each once for a snapshot, and again if its chunks were rewritten in a local store. */
export function createCoordinates(read: ReadStored): CoordinateValues {
  const snapshots = new WeakMap<DatasetSnapshot, ReturnType<typeof createMemo>>();
  const cells = createBoundedMap<{ readonly byteLength: number; readonly made: Promise<Cells> }>({
    maxBytes: MAX_CELL_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
  });

  function memoOf(snapshot: DatasetSnapshot) {
    const found = snapshots.get(snapshot) ?? createMemo(snapshot);
    snapshots.set(snapshot, found);
    return found;
  }

  async function coordinates(snapshot: DatasetSnapshot, { variable }: ServedArray): Promise<Coordinates> {
    const { variables, place, gridsOf, kept, versionOf } = memoOf(snapshot);
    const named = variable.dims.map((dim) => dimensionCoordinate(variables, variable, dim));
    const placement = place(variable);
    const versions = await Promise.all(named.map((each) => (each === undefined ? [] : versionOf(each.path))));
    const axes = variable.dims.map(async (dim, index): Promise<CoordinateAxis> => {
      const coordinate = named[index];
      if (coordinate === undefined)
        return { ...axisOf(dim, variable.shape[index]!), variable: undefined, ...NO_COORDINATE };
      const isEast =
        isLongitudes(coordinate) || (placement?.isDegrees === true && placement.plane.x === index);
      const { token } = versions[index] as StoredVersion;
      // One object for all arrays: look-ups keep what they know of it.
      return kept(`${isEast} ${coordinate.path}`, token!, () => readAxis(read, snapshot, coordinate, isEast));
    });
    return {
      axes: await Promise.all(axes),
      version: combineStored(versions.flat(), String),
      ...georeferenceOf(placement, named, () => gridsOf(variable)),
    };
  }

  async function cellsOf(snapshot: DatasetSnapshot, array: ServedArray) {
    const { grid } = await coordinates(snapshot, array);
    if (grid === undefined)
      throw new ZpublishError(
        "invalid-query",
        `'${array.variable.path}' has no latitudes and longitudes of cells`,
      );
    const paths = [grid.latitude, grid.longitude];
    const version = combineStored(await Promise.all(paths.map(memoOf(snapshot).versionOf)), String);
    const { identity, id, revision, state } = snapshot;
    const key = JSON.stringify([identity, id, revision, state, paths, version.token]);
    const [rows, columns] = snapshot.arrays.get(grid.latitude)!.variable.shape.slice(-2) as [number, number];
    let made = cells.get(key)?.made;
    if (made === undefined) {
      made = readCells(read, snapshot, paths, { key, rows, columns });
      cells.set(key, { made, byteLength: rows * columns * CELL_BYTES });
      made.catch(() => cells.delete(key));
    }
    return { ...(await made), version };
  }

  return {
    coordinates,
    async cellPlaces(snapshot: DatasetSnapshot, array: ServedArray): Promise<GridCells> {
      const { places, version } = await cellsOf(snapshot, array);
      return { ...places, version };
    },
    async cellBox(snapshot: DatasetSnapshot, array: ServedArray, latitudes, longitudes): Promise<CellBox> {
      const { places } = await cellsOf(snapshot, array);
      return runCooperatively(cellBoxSteps(places, latitudes, longitudes));
    },
    async nearestCells(
      snapshot: DatasetSnapshot,
      array: ServedArray,
      places,
    ): Promise<readonly NearestCell[]> {
      const { tree } = await cellsOf(snapshot, array);
      return runCooperatively(nearestCellSteps(await tree(), places));
    },
  };
}

/** Reads the coordinate of an axis. @param isEast Whether it may be longitudes */
async function readAxis(read: ReadStored, snapshot: DatasetSnapshot, coordinate: Variable, isEast: boolean) {
  const array = snapshot.arrays.get(coordinate.path)!;
  const { shape, attrs, dims, path } = coordinate;
  const block = await read(snapshot, array, shape.map(whole));
  const found = decodeCoordinate(block, attrs, array.document.fill_value);
  const isLongitude =
    isEast && found.values instanceof Float64Array && found.values.every((each) => !(Math.abs(each) > 1e4));
  return { ...axisOf(dims[0]!, shape[0]!, attrs), variable: path, ...found, isLongitude };
}

/** Reads the cells of a grid. @param paths Of their latitudes and longitudes. */
async function readCells(
  read: ReadStored,
  snapshot: DatasetSnapshot,
  paths: readonly string[],
  size: Pick<GridCells, "key" | "rows" | "columns">,
): Promise<Cells> {
  const [latitudes, longitudes] = await Promise.all(
    paths.map((path) => readPlaces(read, snapshot, snapshot.arrays.get(path)!)),
  );
  const places = { ...size, latitudes: latitudes!, longitudes: longitudes! };
  const tree = memoPromise<CellTree>();
  return { places, tree: async () => tree(() => runCooperatively(cellTreeSteps(places))) };
}

/** Reads the first step of latitudes or longitudes into shared memory. @throws ZpublishError `invalid-query` if the last step differs: cells move */
async function readPlaces(
  read: ReadStored,
  snapshot: DatasetSnapshot,
  array: ServedArray,
): Promise<Float64Array> {
  const { shape, attrs, path, dims } = array.variable;
  const readStep = (share: 0 | 1) =>
    read(
      snapshot,
      array,
      shape.map((length, axis) =>
        axis < shape.length - 2 ? { begin: share * (length - 1), count: 1, step: 1 } : whole(length),
      ),
    );
  const first = await readStep(0);
  const isFixed = shape.slice(0, -2).every((length) => length === 1);
  if (!isFixed && Buffer.compare(first.bytes, (await readStep(1)).bytes) !== 0) {
    const expected = "expected cells that stay where they are, received some that move";
    throw new ZpublishError("invalid-query", `'${path}': ${expected} along '${dims[0]}'; select by index`, {
      details: { parameter: dims[0]!, type: "label", input: path },
    });
  }
  const { values } = decodeCoordinate(first, attrs, array.document.fill_value);
  const places = new Float64Array(new SharedArrayBuffer(8 * (first.values?.length ?? 0))).fill(Number.NaN);
  if (values instanceof Float64Array) places.set(values);
  return places;
}

/** Describes an axis, as far as its coordinate need not be read. */
function axisOf(dim: string, length: number, attrs?: Variable["attrs"]) {
  return { dim, length, role: axisRole(dim, attrs) };
}

/** Creates what is known of a snapshot. */
function createMemo({ arrays, tree, immutable }: DatasetSnapshot) {
  const variables = variablesOf(arrays);
  type Kept = { readonly version: string; readonly memo: ReturnType<typeof memoPromise<CoordinateAxis>> };
  const memos = new Map<string, Kept>();
  return {
    /** Returns the version of a coordinate. */
    versionOf: async (path: string) => (immutable ? FIXED : versionInPlace(arrays.get(path)!.stored)),
    place: createPlacer({ variables, attrs: tree.root.attrs }),
    gridsOf: createGridFinder(variables.values()),
    variables,
    /** Reads an axis once for each version. */
    async kept(key: string, version: string, make: () => Promise<CoordinateAxis>): Promise<CoordinateAxis> {
      const known = memos.get(key);
      const current = known?.version === version ? known : { version, memo: memoPromise<CoordinateAxis>() };
      memos.set(key, current);
      return current.memo(make);
    },
  };
}

function whole(length: number): AxisSelection {
  return { begin: 0, count: length, step: 1 };
}
