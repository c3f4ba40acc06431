import { indexOf, type LabelMethod, labelSelection } from "../cf/axis-labels.js";
import { variableFacts } from "../cf/dataset-facts.js";
import { flagColoursOf, flagValuesOf, isCategorical } from "../cf/packing.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import { categoryColours } from "../colour/colour-scales.js";
import { type CoarserVersion, coarserVersions } from "../dataset/coarser-versions.js";
import { type DatasetSnapshot, findArray, type ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { indexWithin, wrongParameter } from "../http/query.js";
import type { Coordinates, Values } from "../values/values.js";
import { combineStored, type StoredVersion } from "../zarr/chunk-reader.js";
import type { MapCategory, MapExtent, MapFrame, MapPlace, MapSteps } from "./maps.js";
import type { GridTask } from "./project-grid.js";
import { type GridSample, gridAxis, type MapGrid, outerEdges, sampleDegrees } from "./sample-grid.js";

/** Runs in the pool. */
const GRID_TASKS = new URL("./project-grid.js", import.meta.url);

/** Bytes of what is kept, nearly all of them of samples, which all times of a frame share. */
const MAX_KEPT_BYTES = 64 * 2 ** 20;
/** Bytes that an entry takes beside its numbers: its key, and the buffers of a small sample. */
const ENTRY_BYTES = 4_096;

/** An array with a place on the Earth: a variable, or a coarser version of it. */
export interface GriddedArray extends CoarserVersion, Pick<MapPlace, "y" | "x" | "axes"> {
  /** Places of cells are not held, since they may be large. */
  readonly grid: Exclude<MapGrid, { kind: "cells" }> | Pick<MapGrid, "kind">;
  /** Name of the grid in this process. */
  readonly key: string;
  /** What tells its coordinates from those before their files were written over. */
  readonly version: StoredVersion;
}

/** A variable that has maps. */
export type Layer = GriddedArray & MapPlace;

/** Creates what finds where the cells of arrays lie, and what maps of them show by default. */
export function createLayers(values: Values) {
  const kept = createBoundedMap<{ readonly byteLength: number; readonly made: unknown }>({
    maxBytes: MAX_KEPT_BYTES,
    byteLengthOf: ({ byteLength }) => byteLength,
  });

  /** Makes something, and keeps it while it is used. */
  function once<T>(key: string, byteLength: number, make: () => MaybePromise<T>): MaybePromise<T> {
    const known = kept.get(key);
    if (known !== undefined) return known.made as MaybePromise<T>;
    const made = make();
    kept.set(key, { made, byteLength: byteLength + ENTRY_BYTES });
    if (made instanceof Promise) made.catch(() => kept.delete(key));
    return made;
  }

  /** @throws ZpublishError `not-found`, saying why the array has no place */
  async function gridded({ snapshot, array }: CoarserVersion): Promise<GriddedArray> {
    const { variable } = array;
    const refuse = (reason: string) => {
      const message = `Variable '${variable.path}' of dataset '${snapshot.id}' has no map: ${reason}`;
      return new ZpublishError("not-found", message);
    };
    if (!"biuf".includes(variable.dataType.kind))
      throw refuse(`it holds no numbers but ${variable.dataType.numpyName}`);
    if (variable.shape.includes(0)) throw refuse("it has no values");
    const coordinates = await values.coordinates(snapshot, array);
    const { axes, crs } = coordinates;
    if (coordinates.grid !== undefined && typeof crs !== "object") {
      const { y, x } = coordinates.grid;
      const cells = await values.cellPlaces(snapshot, array);
      const version = combineStored([coordinates.version, cells.version], String);
      return { snapshot, array, axes, y, x, version, key: cells.key, grid: { kind: "cells" } };
    }
    const grid = axisGrid(coordinates);
    if (typeof grid === "string") throw refuse(grid);
    const [y, x] = [axisOf("Y", axes), axisOf("X", axes)];
    const { version } = coordinates;
    const { identity, id, revision, state } = snapshot;
    const paths = [axes[y]!.variable, axes[x]!.variable];
    const key = JSON.stringify([identity, id, revision, state, paths, version.token, crs]);
    return { snapshot, array, axes, y, x, version, key, grid };
  }

  /** Runs a task in the pool. @throws ZpublishError `unsupported` if the projection is not known */
  async function runTask<T>({ snapshot, array, grid }: GriddedArray, task: GridTask): Promise<T> {
    if ("y" in grid) return values.run<T>(GRID_TASKS, { ...task, grid });
    const { version: _, ...cells } = await values.cellPlaces(snapshot, array);
    return values.run<T>(GRID_TASKS, { ...task, grid: { kind: "cells", ...cells } });
  }

  function sample(level: GriddedArray, frame: MapFrame, isLinear: boolean): MaybePromise<GridSample> {
    const { crs, bbox, width, height } = frame;
    const { key, grid } = level;
    const isByAxis = "y" in grid && grid.kind === "degrees";
    return once(
      `${key} ${crs} ${bbox} ${width} ${height} ${isLinear}`,
      (isByAxis ? width + height : width * height) * (isLinear ? 24 : 12),
      (): MaybePromise<GridSample> =>
        isByAxis ? sampleDegrees(grid, frame, isLinear) : runTask(level, { kind: "sample", frame, isLinear }),
    );
  }

  return {
    /** Describes the maps of a variable. @throws as `Maps.place` */
    async place(snapshot: DatasetSnapshot, path: string): Promise<Layer> {
      const array = findArray(snapshot, path);
      const found = await gridded({ snapshot, array });
      const { y, x, axes, grid, key } = found;
      const { attrs } = array.variable;
      const categories = categoriesOf(attrs);
      return {
        ...found,
        title: variableFacts(attrs).description ?? array.variable.path,
        extent:
          "y" in grid && grid.kind === "degrees"
            ? extentOfDegrees(grid)
            : await once(`extent ${key}`, 0, () => runTask<MapExtent | undefined>(found, { kind: "extent" })),
        position: axes.map(({ role, length }, at) => (role === "T" && at !== y && at !== x ? length - 1 : 0)),
        isContinuous: grid.kind !== "cells" && categories === undefined,
        categories,
        isCurrent: () => found.version.isUnchanged?.() === true,
      };
    },
    /**
     * Samples the version of a variable that has as many cells as a frame has pixels, or more: the coarsest of these, else the finest.
     * @returns The versions of the coordinates by which that was found, too.
     * @throws ZpublishError as `Maps.place`
     */
    async sampled(layer: Layer, frame: MapFrame, isLinear: boolean) {
      const coordinates = [layer.version];
      let columns = 0;
      for (const version of coarserVersions(layer.snapshot, layer.array).reverse()) {
        if (version.array.variable.shape[layer.x]! < columns) continue;
        // Coarser versions may be without coordinates.
        const level = await gridded(version).catch((error: unknown) => {
          if (!(error instanceof ZpublishError) || error.code !== "not-found") throw error;
        });
        if (level === undefined) continue;
        coordinates.push(level.version);
        const found = await sample(level, frame, isLinear);
        if (found.cellsPerPixel >= 1) return { level, sample: found, coordinates };
        columns = version.array.variable.shape[level.x]! / found.cellsPerPixel;
      }
      return { level: layer, sample: await sample(layer, frame, isLinear), coordinates };
    },
  };
}

function axisOf(role: "Y" | "X", axes: Coordinates["axes"]): number {
  return axes.findIndex((axis) => axis.role === role);
}

/** Returns the grid of an array's axes Y and X; why it has none if it has none. */
function axisGrid({ axes, crs }: Coordinates): MapGrid | string {
  const [ofY, ofX] = [axes[axisOf("Y", axes)], axes[axisOf("X", axes)]];
  if (ofY === undefined || ofX === undefined) return "it has no two axes that lie on the Earth";
  if (crs === undefined || crs === "pixels") return "its coordinates are in no system that is known here";
  const [y, x] = [gridAxis(ofY), gridAxis(ofX)];
  if (typeof y === "string") return y;
  if (typeof x === "string") return x;
  return crs === "degrees" ? { kind: crs, y, x } : { kind: "projected", y, x, projection: crs };
}

function categoriesOf(attrs: ServedArray["variable"]["attrs"]): MapPlace["categories"] {
  const flags = isCategorical(attrs) ? flagValuesOf(attrs) : [];
  if (flags.length === 0) return undefined;
  const colours = Buffer.from(flagColoursOf(attrs, flags.length) ?? categoryColours(flags.length));
  const meanings = typeof attrs.flag_meanings === "string" ? attrs.flag_meanings.trim().split(/\s+/) : [];
  return flags.map(
    (value, index): MapCategory => ({
      value,
      colour: `#${colours.toString("hex", 3 * index, 3 * index + 3)}`,
      meaning: meanings[index],
    }),
  );
}

function extentOfDegrees({ y, x }: Extract<MapGrid, { kind: "degrees" }>): MapExtent {
  const [south, north] = outerEdges(y).sort((a, b) => a - b) as [number, number];
  const [west, east] = outerEdges(x).sort((a, b) => a - b) as [number, number];
  const isRound = x.isCyclic || east - west >= 360;
  const turns = 360 * Math.floor((west + 180) / 360);
  const [left, right] = isRound ? [-180, 180] : [west - turns, east - turns];
  return [left, Math.max(south, -90), right, Math.min(north, 90)];
}

/**
 * Returns the place of a map: one index per axis, 0 for those of the grid.
 * @throws ZpublishError `invalid-query` if a name is no other axis, or a label or an index is no step of it
 */
export function stepsPosition({ axes, y, x, position }: MapPlace, steps: MapSteps): number[] {
  const found = [...position];
  for (const [name, step] of steps) {
    const named = axes.findIndex(({ dim }) => dim === name);
    const at = named === -1 && name === "time" ? axes.findIndex(({ role }) => role === "T") : named;
    if (at === -1 || at === y || at === x) {
      const others = axes.filter((_, axis) => axis !== y && axis !== x).map(({ dim }) => dim);
      const expected =
        others.length === 0 ? "no dimension, since maps show all" : `one of ${others.join(", ")}`;
      throw wrongParameter(name, "unknown_dimension", expected, name);
    }
    const axis = axes[at]!;
    found[at] = typeof step === "number" ? indexWithin(name, step, axis.length) : stepOf(axis, name, step);
  }
  return found;
}

function stepOf(axis: MapPlace["axes"][number], name: string, text: string): number {
  const [, method = "exact", label = text] = /^(exact|nearest|ffill|bfill)::(.*)$/s.exec(text) ?? [];
  const found =
    method === "exact" ? labelSelection(axis, label) : indexOf(axis, label, method as LabelMethod);
  if (typeof found === "object") {
    if ("begin" in found && found.count === 1) return found.begin;
    throw wrongParameter(name, "label", "the label of one step, or nearest::label", label);
  }
  if (found >= 0) return found;
  const side = method === "ffill" ? "before" : "after";
  throw wrongParameter(name, "empty_selection", `a label with a step ${side} it`, label);
}
