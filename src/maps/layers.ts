import { indexOf, type LabelMethod, labelSelection } from "../cf/axis-labels.js";
import { variableFacts } from "../cf/dataset-facts.js";
import { flagColoursOf, flagValuesOf, isCategorical } from "../cf/packing.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { categoryColours } from "../colour/colour-scales.js";
import { chooseRange } from "../colour/value-range.js";
import { type CoarserVersion, coarserVersions } from "../dataset/coarser-versions.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { memoPromise } from "../event-loop/joined.js";
import { wrongParameter } from "../http/query.js";
import type { AxisSelection, ReadCost, Values } from "../values/values.js";
import type { MapCategory, MapExtent, MapFrame, MapLayer, MapPlace, MapSteps } from "./maps.js";
import type { GridTask } from "./project-grid.js";
import { type GridAxis, type GridSample, gridAxis, type MapGrid, sampleDegrees } from "./sample-grid.js";

/** Runs in the pool. */
const GRID_TASKS = new URL("./project-grid.js", import.meta.url);

/** Samples, which all times of a frame share. */
const MAX_SAMPLE_BYTES = 64 * 2 ** 20;

/** Chunks that one picture of 512 × 512 pixels is made of, at most; larger pictures may be made of more. */
const MAX_CHUNKS = 16;
const PIXELS = 512 * 512;
/** Decoded bytes of any number of chunks that may be read all the same. */
const MAX_SMALL_BYTES = 4 * 2 ** 20;

/** Whether a picture may be made of so many chunks. */
export function isCheap({ chunks, chunkBytes }: ReadCost, pixels = PIXELS): boolean {
  const pictures = Math.max(1, pixels / PIXELS);
  return chunks <= MAX_CHUNKS * pictures || chunkBytes <= MAX_SMALL_BYTES * pictures;
}

/** An array with a place on the Earth: a variable, or a coarser version of it. */
export interface GriddedArray extends CoarserVersion {
  readonly grid: MapGrid;
  /** Axes of the array along rows and columns of the grid. */
  readonly y: number;
  readonly x: number;
  readonly axes: MapLayer["axes"];
}

/** Creates what finds where the cells of arrays lie, and what maps of them show by default. */
export function createLayers(values: Values) {
  const samples = createBoundedMap<{
    readonly byteLength: number;
    readonly made: GridSample | Promise<GridSample>;
  }>({
    maxBytes: MAX_SAMPLE_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
  });
  const once = createSnapshotPromises();
  const keyOf = createKeys();
  const gridKey = (grid: MapGrid) => keyOfGrid(grid, keyOf);

  /** @throws ZpublishError `not-found`, saying why the array has no place */
  async function placed({ snapshot, array }: CoarserVersion): Promise<GriddedArray> {
    const { variable } = array;
    const refuse = (reason: string): never => {
      const message = `Variable '${variable.path}' of dataset '${snapshot.id}' has no map: ${reason}`;
      throw new ZpublishError("not-found", message);
    };
    if (!"biuf".includes(variable.dataType.kind))
      refuse(`it holds no numbers but ${variable.dataType.numpyName}`);
    if (variable.shape.includes(0)) refuse("it has no values");
    const { axes, crs, grid } = await values.coordinates(snapshot, array);
    const found = { snapshot, array, axes };
    if (grid !== undefined && typeof crs !== "object") {
      const places = await values.cellPlaces(snapshot, array);
      return { ...found, y: grid.y, x: grid.x, grid: { kind: "cells", key: keyOf(places), ...places } };
    }
    const [y, x] = [axes.findIndex(({ role }) => role === "Y"), axes.findIndex(({ role }) => role === "X")];
    if (y === -1 || x === -1) return refuse("it has no two axes that lie on the Earth");
    if (crs === undefined || crs === "pixels")
      return refuse("its coordinates are in no system that is known here");
    const [ofY, ofX] = [gridAxis(axes[y]!), gridAxis(axes[x]!)];
    if (typeof ofY === "string") return refuse(ofY);
    if (typeof ofX === "string") return refuse(ofX);
    const both = { y: ofY, x: ofX };
    if (crs === "degrees") return { ...found, y, x, grid: { kind: "degrees", ...both } };
    return { ...found, y, x, grid: { kind: "projected", ...both, projection: crs } };
  }

  /** @throws ZpublishError `unsupported` if the projection is not known */
  function sample(grid: MapGrid, frame: MapFrame, isLinear: boolean): GridSample | Promise<GridSample> {
    const key = `${gridKey(grid)} ${frame.crs} ${frame.bbox} ${frame.width} ${frame.height} ${isLinear}`;
    const known = samples.get(key);
    if (known !== undefined) return known.made;
    const isByAxis = grid.kind === "degrees";
    const made = isByAxis
      ? sampleDegrees(grid, frame, isLinear)
      : runTask<GridSample>({ kind: "sample", grid, frame, isLinear });
    const entries = isByAxis ? frame.width + frame.height : frame.width * frame.height;
    samples.set(key, { made, byteLength: 512 + entries * (isLinear ? 24 : 12) });
    if (made instanceof Promise) made.catch(() => samples.delete(key));
    return made;
  }

  const runTask = <T>(task: GridTask): Promise<T> => values.run<T>(GRID_TASKS, task);

  async function extentOf({ snapshot, grid }: GriddedArray): Promise<MapExtent | undefined> {
    if (grid.kind === "degrees") return extentOfDegrees(grid);
    return once(snapshot, `extent ${gridKey(grid)}`, () =>
      runTask<MapExtent | undefined>({ kind: "extent", grid }),
    );
  }

  async function placeOf(base: GriddedArray): Promise<MapPlace> {
    const { y, x, axes, grid, array } = base;
    const position = axes.map(({ role, length }, at) =>
      role === "T" && at !== y && at !== x ? length - 1 : 0,
    );
    const categories = categoriesOf(array);
    const title = variableFacts(array.variable.attrs).description ?? array.variable.path;
    return {
      ...{ title, extent: await extentOf(base), y, x, axes, position, categories },
      isContinuous: grid.kind !== "cells" && categories === undefined,
    };
  }

  return {
    /** Describes the maps of a variable by its coordinates. @throws as `Maps.place` */
    place: async (snapshot: DatasetSnapshot, array: ServedArray): Promise<MapPlace> =>
      placeOf(await placed({ snapshot, array })),
    /** Describes the maps of a variable. @throws as `Maps.layer` */
    async layer(snapshot: DatasetSnapshot, array: ServedArray): Promise<MapLayer> {
      const base = await placed({ snapshot, array });
      const place = await placeOf(base);
      const { low, high, isDiverging } = await once(snapshot, `range ${array.variable.path}`, () =>
        rangeOf(values, base, place.position),
      );
      return { ...place, range: [low, high], scale: isDiverging ? "rdbu" : "viridis" };
    },
    /**
     * Samples the version of a variable that has as many cells as a frame has pixels, or more: the coarsest of these, else the finest.
     * @throws ZpublishError as `Maps.layer`
     */
    async sampled(
      snapshot: DatasetSnapshot,
      array: ServedArray,
      frame: MapFrame,
      isLinear: boolean,
    ): Promise<{ readonly level: GriddedArray; readonly sample: GridSample }> {
      const versions = [{ snapshot, array }, ...coarserVersions(snapshot, array)];
      for (let at = versions.length - 1; ; ) {
        // Coarser versions may be without coordinates.
        const level = await placed(versions[at]!).catch((error: unknown) => {
          if (at === 0 || !(error instanceof ZpublishError) || error.code !== "not-found") throw error;
        });
        const found = level && (await sample(level.grid, frame, isLinear));
        const density = found?.cellsPerPixel ?? 0;
        if (level !== undefined && found !== undefined && (at === 0 || density >= 1))
          return { level, sample: found };
        const columnsOf = (version: number) => versions[version]!.array.variable.shape[level?.x ?? 0]!;
        const columns = columnsOf(at);
        do at--;
        while (at > 0 && level !== undefined && (density * columnsOf(at)) / columns < 1);
      }
    },
  };
}

/** Creates what returns the promise of `make()`, made once for a snapshot and a key. */
function createSnapshotPromises() {
  const memos = new WeakMap<DatasetSnapshot, Map<string, ReturnType<typeof memoPromise<unknown>>>>();
  return async <T>(snapshot: DatasetSnapshot, key: string, make: () => Promise<T>): Promise<T> => {
    const ofSnapshot = memos.get(snapshot) ?? new Map<string, ReturnType<typeof memoPromise<unknown>>>();
    memos.set(snapshot, ofSnapshot);
    const memo = ofSnapshot.get(key) ?? memoPromise<unknown>();
    ofSnapshot.set(key, memo);
    return memo(make) as Promise<T> | T;
  };
}

/** Names a grid in this process. @param keyOf Names its axes. */
function keyOfGrid(grid: MapGrid, keyOf: ReturnType<typeof createKeys>): string {
  if (grid.kind === "cells") return grid.key;
  const axes = `${keyOf(grid.y)} ${keyOf(grid.x)}`;
  return grid.kind === "degrees" ? axes : `${axes} ${grid.projection.scale} ${grid.projection.definition}`;
}

/** Creates names of objects in this process. */
function createKeys(): (object: object) => string {
  const keys = new WeakMap<object, string>();
  let count = 0;
  return (object) => {
    const key = keys.get(object) ?? `${++count}`;
    keys.set(object, key);
    return key;
  };
}

function categoriesOf({ variable: { attrs } }: ServedArray): MapLayer["categories"] {
  const flags = isCategorical(attrs) ? flagValuesOf(attrs) : [];
  if (flags.length === 0) return undefined;
  const colours = flagColoursOf(attrs, flags.length) ?? categoryColours(flags.length);
  const meanings = typeof attrs.flag_meanings === "string" ? attrs.flag_meanings.trim().split(/\s+/) : [];
  return flags.map((value, index): MapCategory => {
    const colour = `#${Buffer.from(colours.subarray(3 * index, 3 * index + 3)).toString("hex")}`;
    return { value, colour, meaning: meanings[index] };
  });
}

function extentOfDegrees(grid: Extract<MapGrid, { kind: "degrees" }>): MapExtent {
  const [[south, north], [west, east]] = [edgesOf(grid.y), edgesOf(grid.x)];
  const isRound = grid.x.isCyclic || east - west >= 360;
  const turns = 360 * Math.floor((west + 180) / 360);
  const [left, right] = isRound ? [-180, 180] : [west - turns, east - turns];
  return [left, Math.max(south, -90), right, Math.min(north, 90)];
}

/** Returns the outer edges of the cells of an axis. */
function edgesOf({ centres }: GridAxis): readonly [least: number, greatest: number] {
  const last = centres.length - 1;
  const first = centres[0]! - (centres[1]! - centres[0]!) / 2;
  const end = centres[last]! + (centres[last]! - centres[last - 1]!) / 2;
  return first < end ? [first, end] : [end, first];
}

/** Rows and columns of which values are read for a range. */
const RANGE_CELLS = 64;

/** Chooses the range of a layer by some values of one place: of the whole plane if few chunks have them, else of its coarsest version or its centre. */
async function rangeOf(
  values: Values,
  { snapshot, array, y, x }: GriddedArray,
  position: readonly number[],
): Promise<ReturnType<typeof chooseRange>> {
  const { dataType, chunkShape } = array.variable;
  if (dataType.kind === "b") return { low: 0, high: 1, isDiverging: false };
  const planeOf = (version: CoarserVersion, isCentre: boolean): readonly AxisSelection[] =>
    position.map((index, axis) => {
      if (axis !== y && axis !== x) return { begin: index, count: 1, step: 1 };
      const length = version.array.variable.shape[axis]!;
      const unit = isCentre ? Math.max(1, chunkShape[axis]!) : length;
      const begin = Math.floor(length / 2 / unit) * unit;
      const cells = Math.min(unit, length - begin);
      const count = Math.min(cells, RANGE_CELLS);
      return {
        indexes: Int32Array.from(
          { length: count },
          (_, at) => begin + Math.floor(((at + 0.5) * cells) / count),
        ),
      };
    });
  const base = { snapshot, array };
  const coarsest = coarserVersions(snapshot, array).at(-1);
  const wholes = [base, ...(coarsest === undefined ? [] : [coarsest])].map((version) => ({
    version,
    plane: planeOf(version, false),
  }));
  const { version, plane } = wholes.find((each) => isCheap(values.cost(each.version.array, each.plane))) ?? {
    version: base,
    plane: planeOf(base, true),
  };
  const block = await values.read(version.snapshot, version.array, plane, { decode: true });
  const finite = Float64Array.from((block.values ?? []) as ArrayLike<number>, Number).filter(Number.isFinite);
  return finite.length === 0 ? { low: 0, high: 1, isDiverging: false } : chooseRange(finite);
}

/**
 * Returns the place of a map: one index per axis, 0 for those of the grid.
 * @throws ZpublishError `invalid-query` if a name is no other axis, or a label or an index is no step of it
 */
export function indexesOf(layer: Pick<MapLayer, "axes" | "y" | "x" | "position">, steps: MapSteps): number[] {
  const { axes, y, x } = layer;
  const place = [...layer.position];
  const others = axes.filter((_, at) => at !== y && at !== x).map(({ dim }) => dim);
  for (const [name, step] of steps) {
    const named = axes.findIndex(({ dim }) => dim === name);
    const at = named === -1 && name === "time" ? axes.findIndex(({ role }) => role === "T") : named;
    if (at === -1 || at === y || at === x) {
      const expected =
        others.length === 0 ? "no dimension, since maps show all" : `one of ${others.join(", ")}`;
      throw wrongParameter(name, "unknown_dimension", expected, name);
    }
    const { length } = axes[at]!;
    if ("index" in step) {
      const { index } = step;
      if (!(index >= -length && index < length))
        throw wrongParameter(name, "index_error", `an index from ${-length} to ${length - 1}`, `${index}`);
      place[at] = index < 0 ? index + length : index;
    } else place[at] = stepOfLabel(axes[at]!, name, step.label);
  }
  return place;
}

function stepOfLabel(axis: MapLayer["axes"][number], name: string, label: string): number {
  const [, method, text = label] = /^(exact|nearest|ffill|bfill)::(.*)$/s.exec(label) ?? [];
  if (method !== undefined && method !== "exact") {
    const found = indexOf(axis, text, method as LabelMethod);
    if (found >= 0) return found;
    throw wrongParameter(
      name,
      "empty_selection",
      `a label with a step ${method === "ffill" ? "before" : "after"} it`,
      text,
    );
  }
  const found = labelSelection(axis, text);
  if (typeof found === "number") return found;
  if ("begin" in found && found.count === 1) return found.begin;
  throw wrongParameter(name, "label", "the label of one step, or nearest::label", text);
}
