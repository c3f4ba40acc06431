import { createHash } from "node:crypto";
import type { CoordinateAxis } from "../cf/axis-labels.js";
import { axisRole } from "../cf/axis-roles.js";
import {
  type CellBox,
  type CellPlaces,
  type CellSearch,
  cellBoxSteps,
  cellSearchSteps,
  type NearestCell,
} from "../cf/cell-search.js";
import {
  createGridFinder,
  createPlacer,
  dimensionCoordinate,
  isLatitudes,
  isLongitudes,
  type Placement,
  variablesOf,
} from "../cf/placement.js";
import { decodeCoordinate, NO_COORDINATE } from "../codec/items/decode-coordinate.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { memoPromise } from "../event-loop/joined.js";
import { elementCount, gridShapeOf, type Variable } from "../model/data-tree.js";
import { isReadForWorkers, openChunkReader } from "../open/chunk-reader.js";
import type { ChunkSource } from "../zarr/chunk-reader.js";
import { combinations } from "./choose-cut.js";
import type { AxisSelection, Coordinates, CoordinateValues, ValueBlock } from "./values.js";

/** Reads stored values. */
type ReadStored = (
  snapshot: DatasetSnapshot,
  array: ServedArray,
  selection: readonly AxisSelection[],
) => Promise<ValueBlock>;

/** Memory of latitudes and longitudes of cells that are kept for further look-ups. */
const MAX_CELL_BYTES = 512 * 2 ** 20;
/** Bytes of one cell: its latitude and longitude, a point and a place in a block. */
const CELL_BYTES = 44;

/** Creates what reads coordinates, each once for a snapshot, and again if its chunks were rewritten in a local store. */
export function createCoordinates(read: ReadStored): CoordinateValues {
  const snapshots = new WeakMap<DatasetSnapshot, ReturnType<typeof createMemo>>();
  const cells = createBoundedMap<{ places: CellPlaces; search: CellSearch }>({
    maxBytes: MAX_CELL_BYTES,
    byteLengthOf: ({ places }) => places.rows * places.columns * CELL_BYTES,
  });

  function memoOf(snapshot: DatasetSnapshot) {
    const found = snapshots.get(snapshot) ?? createMemo(snapshot);
    snapshots.set(snapshot, found);
    return found;
  }

  async function describe(
    snapshot: DatasetSnapshot,
    variable: Variable,
    named: readonly (Variable | undefined)[],
    versions: readonly string[],
  ): Promise<Coordinates> {
    const { place, gridsOf, kept } = memoOf(snapshot);
    const placement = place(variable);
    const axes = variable.dims.map(async (dim, index): Promise<CoordinateAxis> => {
      const coordinate = named[index];
      const common = { dim, length: variable.shape[index]!, role: axisRole(dim, coordinate?.attrs) };
      if (coordinate === undefined) return { ...common, variable: undefined, ...NO_COORDINATE };
      const isEast =
        isLongitudes(coordinate) || (placement?.isDegrees === true && placement.plane.x === index);
      // One object for all arrays: look-ups keep what they know of it.
      return kept(`axis ${isEast} ${coordinate.path}`, versions[index]!, async () => {
        const array = snapshot.arrays.get(coordinate.path)!;
        const block = await read(snapshot, array, [whole(common.length)]);
        const found = decodeCoordinate(block, coordinate.attrs, array.document.fill_value);
        const isLongitude =
          isEast &&
          found.values instanceof Float64Array &&
          found.values.every((each) => !(Math.abs(each) > 1e4));
        return { ...common, variable: coordinate.path, ...found, isLongitude };
      });
    });
    return { axes: await Promise.all(axes), ...lieOf(placement, named, () => gridsOf(variable)) };
  }

  const coordinates: CoordinateValues["coordinates"] = async (snapshot: DatasetSnapshot, { variable }) => {
    const { variables, kept } = memoOf(snapshot);
    const named = variable.dims.map((dim) => dimensionCoordinate(variables, variable, dim));
    const versions = await Promise.all(named.map((each) => (each ? versionOf(snapshot, each.path) : "")));
    return kept(`array ${variable.path}`, versions.join(), () =>
      describe(snapshot, variable, named, versions),
    );
  };

  async function cellsOf(snapshot: DatasetSnapshot, array: ServedArray) {
    const { grid } = await coordinates(snapshot, array);
    if (grid === undefined)
      throw new ZpublishError(
        "invalid-query",
        `'${array.variable.path}' has no latitudes and longitudes of cells`,
      );
    const paths = [grid.latitude, grid.longitude];
    const versions = await Promise.all(paths.map((path) => versionOf(snapshot, path)));
    const key = JSON.stringify([memoOf(snapshot).number, paths, versions]);
    const found = cells.get(key);
    if (found !== undefined) return found;
    const [latitudes, longitudes] = await Promise.all(
      paths.map((path) => readCells(snapshot, snapshot.arrays.get(path)!)),
    );
    const [rows, columns] = snapshot.arrays.get(grid.latitude)!.variable.shape.slice(-2) as [number, number];
    const places = { rows, columns, latitudes: latitudes!, longitudes: longitudes! };
    const made = { places, search: await runCooperatively(cellSearchSteps(places)) };
    cells.set(key, made);
    return made;
  }

  /** Reads the first step of latitudes or longitudes. @throws ZpublishError `invalid-query` if the last step differs: cells move */
  async function readCells(snapshot: DatasetSnapshot, array: ServedArray): Promise<Float64Array> {
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
    return values instanceof Float64Array
      ? values
      : new Float64Array(first.values?.length ?? 0).fill(Number.NaN);
  }

  return {
    coordinates,
    async cellBox(snapshot: DatasetSnapshot, array: ServedArray, latitudes, longitudes): Promise<CellBox> {
      const { places } = await cellsOf(snapshot, array);
      return runCooperatively(cellBoxSteps(places, latitudes, longitudes));
    },
    async nearestCells(
      snapshot: DatasetSnapshot,
      array: ServedArray,
      places,
    ): Promise<readonly NearestCell[]> {
      const { search } = await cellsOf(snapshot, array);
      const slice = createSlice();
      const found: NearestCell[] = [];
      for (const [latitude, longitude] of places) {
        found.push(search(latitude, longitude));
        if (slice.isOver()) await slice.next();
      }
      return found;
    },
  };
}

/** Says how the axes of a variable lie on the Earth. @param named Their coordinates. */
function lieOf(
  placement: Placement<Variable> | undefined,
  named: readonly (Variable | undefined)[],
  findGrid: () => Pick<Placement<Variable>, "plane" | "grid"> | undefined,
): Pick<Coordinates, "crs" | "grid"> {
  const { projection, isDegrees, isImage } = placement ?? {};
  // Latitudes and longitudes of cells beside coordinates of a projection.
  const { grid, plane } = (projection === undefined ? placement : findGrid()) ?? {};
  const isGeographic =
    grid === undefined && named.some((each) => each && (isLatitudes(each) || isLongitudes(each)));
  return {
    crs: projection ?? (isDegrees || isGeographic ? "degrees" : isImage ? "pixels" : undefined),
    grid: grid && { latitude: grid.latitude.path, longitude: grid.longitude.path, ...plane! },
  };
}

const looks = new WeakMap<ServedArray, { readonly version: Promise<string>; readonly untilMs: number }>();

/**
 * Looks up what tells values from those before chunks were rewritten in place, which leaves a snapshot as it is if they are local files. A
 * look at n chunks holds for n - 1 ms, since it takes 20 µs each.
 */
async function versionOf({ arrays, immutable }: DatasetSnapshot, path: string): Promise<string> {
  const array = arrays.get(path)!;
  if (immutable || isReadForWorkers(array.stored.chunks)) return "";
  const known = looks.get(array);
  if (known !== undefined && performance.now() < known.untilMs) return known.version;
  const grid = gridShapeOf(array.stored.shape, array.stored.chunkShape);
  const version = versionOfChunks(array.stored.chunks, grid);
  looks.set(array, { version, untilMs: performance.now() + elementCount(grid) - 1 });
  return version;
}

async function versionOfChunks(chunks: ChunkSource, grid: readonly number[]): Promise<string> {
  const reader = openChunkReader(chunks);
  const slice = createSlice();
  const hash = createHash("sha256");
  for (const coords of combinations(grid.map((length) => [...Array(length).keys()]))) {
    hash.update(`${(await reader.version(coords)).token}\n`);
    if (slice.isOver()) await slice.next();
  }
  return hash.digest("base64url");
}

let snapshotCount = 0;

/** Creates what is known of a snapshot. */
function createMemo({ arrays, tree }: DatasetSnapshot) {
  const variables = variablesOf(arrays);
  const memos = new Map<string, { version: string; memo: ReturnType<typeof memoPromise<unknown>> }>();
  /** Makes something once for each version. */
  async function kept<T>(key: string, version: string, make: () => Promise<T>): Promise<T> {
    const known = memos.get(key);
    const current = known?.version === version ? known : { version, memo: memoPromise<unknown>() };
    memos.set(key, current);
    return (await current.memo(make)) as T;
  }
  snapshotCount += 1;
  return {
    /** Tells snapshots apart: files of a join may change while identity and revision stay. */
    number: snapshotCount,
    place: createPlacer({ variables, attrs: tree.root.attrs }),
    gridsOf: createGridFinder(variables.values()),
    variables,
    kept,
  };
}

function whole(length: number): AxisSelection {
  return { begin: 0, count: length, step: 1 };
}
