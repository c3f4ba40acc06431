import { effect, signal, untracked } from "@preact/signals-core";
import { isDownward, isLatitude, isLongitude } from "../../cf/axis-roles.js";
import { mapProjectionOf } from "../../cf/projection.js";
import type { JsonObject } from "../../json/json-value.js";
import { elementCount } from "../../model/data-tree.js";
import { type Axis, cellAxis, createAxis, dataExtent } from "../axis.js";
import {
  type AxisDescription,
  type AxisValues,
  type DatasetDescription,
  type GridExtent,
  INDEX_AXIS,
  type PictureAxes,
  type Position,
  type VariableDescription,
  type View,
} from "../protocol.js";
import { stepOf, stepText } from "./axis-ticks.js";
import type { MapPlane } from "./map/plane-box.js";
import type { PageState, ResolvedView } from "./page-state.js";

/** What is read of an axis. */
interface KnownAxis {
  readonly values: AxisValues;
  readonly places: Axis;
  /** Extent of the curvilinear grid whose latitudes the key names. */
  readonly extent?: GridExtent | undefined;
}

/** Returns the variable of a view: its own, else the one that is most worth a look; undefined if the dataset has none. */
export function chosenVariable(dataset: DatasetDescription, view: View): VariableDescription | undefined {
  const { variables } = dataset;
  const asked = variables.find(({ path }) => path === view.variable);
  if (asked !== undefined) return asked;
  const helpers = helperNames(variables);
  const interests = variables.map((each) => ({ each, interest: interestOf(each, helpers) }));
  // The first one of the store where nothing else tells.
  const [best] = interests.sort(
    ({ interest: one, each: { shape } }, { interest: other, each }) =>
      other - one || elementCount(each.shape) - elementCount(shape),
  );
  return best?.each;
}

/** Attributes that name variables about others: cells, quality, projections, terms of formulas. */
const HELPER_ATTRIBUTES = ["ancillary_variables", "cell_measures", "formula_terms", "grid_mapping", "mesh"];

function helperNames(variables: readonly VariableDescription[]): ReadonlySet<string> {
  const texts = variables.flatMap(({ attrs }) => HELPER_ATTRIBUTES.map((name) => attrs[name]));
  return new Set(texts.flatMap((text) => (typeof text === "string" ? text.split(/[\s:]+/) : [])));
}

/** Returns how much a variable shows, what counts most first: data, in a form that can be seen, maps, those that move. */
function interestOf(variable: VariableDescription, helpers: ReadonlySet<string>): number {
  const { name, form, axes, plane, curvilinear, attrs, problem, isCoordinate } = variable;
  const isMap =
    curvilinear !== undefined || (axes[plane?.x ?? -1]?.role === "X" && axes[plane?.y ?? -1]?.role === "Y");
  const isPlace = isLatitude(attrs) || isLongitude(attrs) || /(?:^|_)(?:bnds|bounds)$/i.test(name);
  const isTime = typeof attrs.units === "string" && /\bsince\b/i.test(attrs.units);
  const facts = [
    problem === undefined,
    !isCoordinate && !isPlace && !isTime && !helpers.has(name),
    form !== "text",
    form === "image",
    isMap,
    axes.some(({ role, length }) => role === "T" && length > 1),
  ];
  return facts.reduce((sum, fact) => 2 * sum + Number(fact), 0);
}

/** Settles what a view leaves open. Undefined until all its axes are read. */
export function resolveView(
  view: View,
  variable: VariableDescription,
  knownOf: (axis: AxisDescription) => KnownAxis | undefined,
): ResolvedView | undefined {
  const known = variable.axes.map(knownOf);
  if (!known.every((each) => each !== undefined)) return undefined;
  const values = known.map((each) => each.values);
  const places = known.map((each) => (view.asImage ? cellAxis(each.places.length) : each.places));
  const problems = variable.unplaced === undefined ? [] : [variable.unplaced];
  if (view.variable !== undefined && view.variable !== variable.path) {
    problems.push(`“${view.variable}” is not in this dataset; showing “${variable.path}”.`);
  }
  const axes = axesOf(view, variable, problems);
  const at = variable.axes.map((axis, index) => {
    const position = Object.hasOwn(view.at, axis.dim) ? view.at[axis.dim] : undefined;
    if (position === undefined || index === axes?.x || index === axes?.y) return 0;
    const step = stepOf(values[index]!, axis, position);
    if (step !== undefined) return step;
    const shown = stepText(values[index]!, 0, axis);
    problems.push(`“${axis.dim}” has no step at ${wordsOf(position)}; showing ${shown}.`);
    return 0;
  });
  const { bands } = variable;
  const isOneBand = bands === undefined || Object.hasOwn(view.at, variable.dims[bands.axis]!);
  const isShown = axes === undefined || axes.x === bands?.axis || axes.y === bands?.axis;
  return { variable, axes, bands: isOneBand || isShown ? undefined : bands, at, values, places, problems };
}

function axesOf(view: View, variable: VariableDescription, problems: string[]): PictureAxes | undefined {
  const { dims } = variable;
  const plane = view.asImage ? tableOf(variable) : variable.plane;
  if (variable.form !== "image" || plane === undefined) return undefined;
  const x = view.x === undefined ? plane.x : dims.indexOf(view.x);
  const y = view.y === undefined ? plane.y : dims.indexOf(view.y);
  if (x >= 0 && y >= 0 && x !== y) return { x, y };
  // The axes are swapped if only one is named, and it is the other one.
  if (x >= 0 && x === y && (view.x === undefined || view.y === undefined)) return { x: plane.y, y: plane.x };
  const name = view.x !== undefined && x < 0 ? view.x : (view.y ?? view.x);
  problems.push(
    `“${name}” cannot be an axis of “${variable.path}”; showing ${dims[plane.x]} and ${dims[plane.y]}.`,
  );
  return plane;
}

/** Returns the plane in which a variable is rows and columns: a list of places beside its first other axis, if it has one. */
export function tableOf({ plane, shape }: VariableDescription): PictureAxes | undefined {
  if (plane === undefined || plane.x !== plane.y) return plane;
  const y = shape.findIndex((length, axis) => axis !== plane.x && length > 1);
  return y === -1 ? plane : { x: plane.x, y };
}

/** Returns the plane of a picture. `curvilinear` is the extent of the grid if it is a map of one. */
export function mapPlaneOf(
  resolved: ResolvedView,
  axes: PictureAxes,
  attrsOf: (path: string) => JsonObject | undefined,
  curvilinear?: GridExtent,
): MapPlane {
  if (curvilinear !== undefined) return curvilinearPlane(resolved, axes, curvilinear);
  const { variable } = resolved;
  const sideOf = (index: number) => {
    const axis = variable.axes[index]!;
    const places = resolved.places[index]!;
    const hasNumbers = places.centres !== undefined;
    const attrs = hasNumbers ? (attrsOf(axis.coordinate ?? "") ?? {}) : undefined;
    const { units } = resolved.values[index]!;
    const isReversed = index === axes.y && isDownward(attrs, units);
    const [low, high] = dataExtent(places);
    const cell = (high - low) / Math.max(1, axis.length);
    return { axis, hasNumbers, units, plane: { low, high, cell, wraps: places.isClosed, isReversed } };
  };
  const [x, y] = [sideOf(axes.x), sideOf(axes.y)];
  const plane = { x: x.plane, y: y.plane, isCurved: false };
  if (x.hasNumbers && y.hasNumbers) {
    if (x.axis.isLongitude && y.axis.isLatitude) return { ...plane, aspect: "degrees" };
    const isOwn = axes.x === variable.plane?.x && axes.y === variable.plane.y;
    const projection = isOwn && variable.projection ? mapProjectionOf(variable.projection) : undefined;
    if (projection !== undefined) return { ...plane, aspect: "equal", projection };
    const isPlane = x.axis.role === "X" && y.axis.role === "Y" && x.units === y.units;
    const lengths = Math.abs(Math.log((x.plane.high - x.plane.low) / (y.plane.high - y.plane.low)));
    const isEqual = isPlane && (x.units !== undefined || lengths < Math.log(MAX_PROPORTION));
    return { ...plane, aspect: isEqual ? "equal" : "free" };
  }
  const proportion = x.axis.length / y.axis.length;
  const isImage = !x.hasNumbers && !y.hasNumbers && Math.abs(Math.log(proportion)) < Math.log(MAX_PROPORTION);
  return { ...plane, aspect: isImage ? "equal" : "free" };
}

/** Proportion of length to height beyond which cells of an image are no longer drawn as squares. */
const MAX_PROPORTION = 8;

function curvilinearPlane(resolved: ResolvedView, axes: PictureAxes, extent: GridExtent): MapPlane {
  const { variable } = resolved;
  const { shape } = variable;
  const { west, east, south, north } = extent;
  const { list } = variable.curvilinear ?? {};
  // Places may be as near to each other as they like.
  const [columns, rows] = list === undefined ? [shape[axes.x]!, shape[axes.y]!] : [MANY, MANY];
  const cell = (east - west) / columns;
  // Longitudes go round the globe, within half a cell.
  const wraps = east - west > 360 - cell / 2 - 1e-6;
  return {
    x: { low: west, high: east, cell, wraps, isReversed: false },
    y: { low: south, high: north, cell: (north - south) / rows, wraps: false, isReversed: false },
    aspect: variable.projection === undefined ? "degrees" : "equal",
    projection: variable.projection && mapProjectionOf(variable.projection),
    isCurved: true,
    hasDots: list?.shape === "dots" || list?.shape === "edges",
  };
}

/** Cells along each side of the map of a list, by which it may be enlarged. */
const MANY = 1e5;

/** Whether two variables have the same horizontal axes, so that a box of one makes sense for the other. */
export function isOnSameGrid(
  one: VariableDescription | undefined,
  other: VariableDescription | undefined,
): boolean {
  const gridOf = (variable: VariableDescription | undefined) =>
    variable?.plane &&
    [variable.plane.x, variable.plane.y]
      .map((index) => variable.axes[index]?.coordinate ?? variable.axes[index]?.dim)
      .join(" ");
  const grid = gridOf(one);
  return grid !== undefined && grid === gridOf(other);
}

function wordsOf(position: Position): string {
  if (position === "last") return "its end";
  return "index" in position ? `index ${position.index}` : `“${position.value}”`;
}

/** Reads coordinates of the variable that is shown, each once. */
export class CoordinateLoader {
  readonly #model: PageState;
  readonly #known = signal<ReadonlyMap<string, KnownAxis>>(new Map());
  readonly #asked = new Set<string>();

  constructor(model: PageState) {
    this.#model = model;
    effect(() => {
      if (model.variable.value !== undefined) untracked(() => this.read());
    });
  }

  /** Returns what is read of an axis; undefined until it is. An axis whose coordinate cannot be read counts cells. */
  knownOf({ coordinate, length }: AxisDescription): KnownAxis | undefined {
    if (coordinate !== undefined) return this.#known.value.get(coordinate);
    return { values: INDEX_AXIS, places: cellAxis(length) };
  }

  /** Returns the extent of a curvilinear grid; undefined until it is known, or if the variable has none. */
  extentOf({ curvilinear }: VariableDescription): GridExtent | undefined {
    return curvilinear && this.#known.value.get(curvilinear.latitude)?.extent;
  }

  /** Reads what is not read yet. */
  read(): void {
    const { path = "", axes = [], plane, curvilinear } = this.#model.variable.peek() ?? {};
    axes.forEach(({ coordinate }, axis) => void this.#ask(coordinate, path, axes, axis));
    void this.#ask(curvilinear?.latitude, path, axes, plane?.x ?? 0);
  }

  /** Asks for an axis, unless that was done under this key. */
  async #ask(
    key: string | undefined,
    variable: string,
    axes: readonly AxisDescription[],
    axis: number,
  ): Promise<void> {
    if (key === undefined || this.#asked.has(key)) return;
    this.#asked.add(key);
    const answer = await this.#model.client.ask<"axis">({ kind: "axis", variable, axis }).catch((error) => {
      this.#asked.delete(key);
      this.#model.fail(error);
    });
    const { values = INDEX_AXIS, extent } = answer ?? {};
    const places = createAxis(axes[axis]!.length, values, axes[axis]);
    this.#known.value = new Map(this.#known.peek()).set(key, { values, places, extent });
  }
}
