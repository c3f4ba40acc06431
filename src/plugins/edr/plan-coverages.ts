import {
  createSelectionPlan,
  type DimSelection,
  type ExportedDataset,
  pickedLength,
  type StepSelection,
  wrongParameter,
  type ZpublishError,
} from "../../plugin-api.js";
import { allSteps, COLLECTION_QUERIES, type EdrQuery, findSteps, readGeometry } from "./edr-query.js";
import { findParameters, type GriddedVariable, type NamedAxis } from "./gridded-variable.js";
import { type PlaceSource, type SelectedPlaces, selectInside, selectNearest } from "./place-selection.js";
import type { WktGeometry } from "./well-known-text.js";

/** Parameters on the same grid, and what is read of them. */
export interface PlannedCoverage {
  readonly places: SelectedPlaces;
  readonly parameters: readonly GriddedVariable[];
  /** What is read along axes, by their keys. */
  readonly selections: ReadonlyMap<string, StepSelection>;
  readonly plan: ExportedDataset;
}

/** How values are answered. */
interface AnswerForm {
  /** Whether all parameters are in one table, for which they must lie on one grid; else one coverage for each set of axes. */
  readonly isTable: boolean;
  readonly isDecoded: boolean;
}

/**
 * Plans what a query reads, before any value is read: nothing but coordinates are. Areas of regular grids are grids, or lists in a table.
 * @returns An empty list if there is no such data
 * @throws ZpublishError `invalid-query`, `too-large`
 */
export async function planCoverages(
  source: PlaceSource,
  query: EdrQuery,
  form: AnswerForm,
): Promise<PlannedCoverage[]> {
  const { context, snapshot, signal } = source;
  const geometry = await readGeometry(query, context.values, signal);
  const names = query.parameters.get("parameter-name")?.split(",");
  const variables = await findParameters(context.values, snapshot, names);
  assertNames(query, variables);
  const groups = new Map<string, GriddedVariable[]>();
  for (const variable of variables) {
    const key = keyOf(variable, form.isTable ? ["x", "y"] : undefined);
    groups.set(key, [...(groups.get(key) ?? []), variable]);
  }
  const known = new Map<string, Promise<SelectedPlaces | undefined>>();
  async function plan(group: readonly GriddedVariable[]): Promise<PlannedCoverage | undefined> {
    const [first] = group;
    if (first === undefined) return undefined;
    const along = alongOf(query, geometry, group);
    const key = [keyOf(first, ["x", "y"]), ...along.map((each) => each.key)].join("\n");
    const found =
      known.get(key) ??
      (query.type === "area" || query.type === "cube"
        ? selectInside(source, first, geometry, query.type === "cube", form.isTable)
        : selectNearest(source, first, geometry, along));
    known.set(key, found);
    const places = await found;
    if (places !== undefined) return planOf(source, query, group, places, form.isDecoded);
    // Points beyond all levels have values of parameters without levels.
    const isAlong = ({ name }: NamedAxis) => along.some((each) => each.name === name);
    return along.length === 0 ? undefined : plan(group.filter(({ axes }) => !axes.some(isAlong)));
  }
  const coverages: PlannedCoverage[] = [];
  for (const group of groups.values()) {
    const coverage = await plan(group);
    if (coverage !== undefined) coverages.push(coverage);
  }
  if (form.isTable && coverages.length > 1)
    throw severalGrids(coverages.map(({ parameters }) => parameters[0]!));
  return coverages;
}

/** Tells axes of variables apart. @param names Of those that count; default: all. */
function keyOf({ axes }: GriddedVariable, names?: readonly string[]): string {
  const own = axes.filter(({ name }) => names === undefined || names.includes(name));
  return JSON.stringify(own.map(({ name, key }) => [name, key].join()).sort());
}

function severalGrids(variables: readonly GriddedVariable[]): ZpublishError {
  const paths = variables.map(({ array }) => array.variable.path).join(" and ");
  return wrongParameter("parameter-name", "several_grids", "parameters of one grid in this format", paths);
}

/**
 * Returns the axes of a group, besides x and y, on which positions of a geometry lie.
 * @throws ZpublishError `invalid-query` if its variables have several such axes of one kind
 */
function alongOf(query: EdrQuery, { z, m }: WktGeometry, group: readonly GriddedVariable[]): NamedAxis[] {
  const isLine = query.type === "trajectory";
  const isDeep = z >= 0 && !query.parameters.has("z") && (isLine || query.type === "position");
  return [isDeep && "z", isLine && m >= 0 && "t"].flatMap((name) => {
    const axes = group.flatMap((each) => each.axes.filter((axis) => axis.name === name));
    if (axes.some(({ key }) => key !== axes[0]!.key)) throw severalGrids(group);
    return axes.slice(0, 1);
  });
}

/** @throws ZpublishError `invalid-query` if a parameter is not known */
function assertNames({ type, parameters }: EdrQuery, variables: readonly GriddedVariable[]): void {
  const axes = variables.flatMap((each) => each.axes.map(({ name }) => name));
  const customs = new Set(axes.filter((name) => !/^[xyzt]$/.test(name)));
  const names = [...Object.keys(COLLECTION_QUERIES[type].parameters), ...customs];
  const unknown = [...parameters.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw wrongParameter(unknown, "unknown_parameter", `one of ${names.join(", ")}`, unknown);
}

/** Plans what is read of parameters on the same places; undefined if it is nothing. */
function planOf(
  { context, snapshot }: PlaceSource,
  query: EdrQuery,
  group: readonly GriddedVariable[],
  places: SelectedPlaces,
  isDecoded: boolean,
): PlannedCoverage | undefined {
  const selections = new Map<string, DimSelection>();
  const parameters = group.filter(({ axes }) =>
    axes.every((each) => {
      const found = selections.get(each.key) ?? places.selections.get(each.name);
      const own = found ?? askedSteps(query, each, places);
      selections.set(each.key, { parameter: each.name, ...own });
      return pickedLength(own.selection) > 0;
    }),
  );
  if (parameters.length === 0) return undefined;
  const chosen = parameters.map(({ array }) => array.variable);
  const plan = createSelectionPlan(snapshot, chosen, selections, isDecoded, (array) =>
    context.values.dataType(array, isDecoded),
  );
  return { places, parameters, selections, plan };
}

/** Finds what is read along an axis besides those of places. A path at one time is a trajectory. */
function askedSteps(query: EdrQuery, { name, axis }: NamedAxis, places: SelectedPlaces): StepSelection {
  const parameter = name === "t" ? "datetime" : name;
  const text = query.parameters.get(parameter);
  const selection = text === undefined ? allSteps(axis) : findSteps(axis, parameter, text);
  const isPath = query.type === "trajectory" && name === "t" && !places.selections.has("z");
  return { kind: isPath && pickedLength(selection) === 1 ? "step" : "steps", selection };
}
