import {
  type AxisSelection,
  createSelectionPlan,
  type DimSelection,
  dimOf,
  type ExportedDataset,
  pickedLength,
  type StepSelection,
  wrongParameter,
} from "../../plugin-api.js";
import { COLLECTION_QUERIES, type EdrQuery, findSteps, levelsOf, readGeometry } from "./edr-query.js";
import { findParameters, type GriddedVariable } from "./gridded-variable.js";
import { type PlaceSource, type SelectedPlaces, selectInside, selectNearest } from "./place-selection.js";
import type { WktGeometry } from "./well-known-text.js";

/** Parameters with the same axes, and what is read of them. */
export interface PlannedCoverage {
  readonly places: SelectedPlaces;
  readonly parameters: readonly GriddedVariable[];
  /** What is read along the axes, by name. */
  readonly selections: ReadonlyMap<string, StepSelection>;
  /** Names of the axes that points have steps of their own on. */
  readonly along: readonly string[];
  readonly plan: ExportedDataset;
}

/** A parameter with what is read of it. */
interface Choice {
  readonly variable: GriddedVariable;
  readonly places: SelectedPlaces;
  readonly along: readonly ("z" | "t")[];
  readonly selections: ReadonlyMap<string, StepSelection>;
}

/**
 * Plans what a query reads, before any value is read: nothing but coordinates are.
 * @param form `coverages`: one for each set of axes, in which areas of regular grids are grids. `table`: all parameters in one, for which
 * they must lie on one grid.
 * @returns An empty list if there is no such data
 * @throws ZpublishError `invalid-query`, `too-large`
 */
export async function planCoverages(
  source: PlaceSource,
  query: EdrQuery,
  form: "coverages" | "table",
  isDecoded: boolean,
): Promise<PlannedCoverage[]> {
  const { context, snapshot, signal } = source;
  const geometry = await readGeometry(query, context.values, signal);
  const variables = await findParameters(context.values, snapshot, query.names);
  assertNames(query, variables);
  const known = new Map<string, Promise<SelectedPlaces | undefined>>();
  const choices: Choice[] = [];
  for (const variable of variables) {
    const dims = variable.axes.map((_, at) => dimOf(snapshot, variable.array.variable, at).key);
    const has = (name: string) => variable.axes.some((each) => each.name === name);
    const along = alongOf(query, geometry).filter(has);
    const key = ["y", "x", ...along].map(
      (name) => dims[variable.axes.findIndex((each) => each.name === name)],
    );
    const select =
      query.type === "area" || query.type === "cube"
        ? () => selectInside(source, variable, geometry, query.type === "cube", form === "table")
        : () => selectNearest(source, variable, geometry, along);
    const found = known.get(key.join("\n")) ?? select();
    known.set(key.join("\n"), found);
    const places = await found;
    const selections = places && selectSteps(query, variable, places, along.length > 0);
    if (selections !== undefined) choices.push({ variable, places: places!, along, selections });
  }
  const groups = new Map<string, Choice[]>();
  for (const choice of choices) {
    const { variable } = choice.variable.array;
    const names = choice.variable.axes.map(({ name }, at) => `${name} ${dimOf(snapshot, variable, at).key}`);
    const key = (form === "table" ? names.filter((name) => /^[xy] /.test(name)) : names).sort().join("\n");
    groups.set(key, [...(groups.get(key) ?? []), choice]);
  }
  if (form === "table" && groups.size > 1) {
    const paths = [...groups.values()].map(([first]) => first!.variable.array.variable.path);
    throw wrongParameter(
      "parameter-name",
      "several_grids",
      "parameters of one grid in this format",
      paths.join(" and "),
    );
  }
  return [...groups.values()].map((group) => planOf(source, group, isDecoded));
}

/** Returns the axes, besides x and y, on which positions of a geometry lie. */
function alongOf(query: EdrQuery, { z, m }: WktGeometry): ("z" | "t")[] {
  const isLine = query.type === "trajectory";
  return [
    ...(z >= 0 && query.parameters.get("z") === undefined ? (["z"] as const) : []),
    ...(isLine && m >= 0 ? (["t"] as const) : []),
  ];
}

/** @throws ZpublishError `invalid-query` if a parameter is not known */
function assertNames({ type, parameters }: EdrQuery, variables: readonly GriddedVariable[]): void {
  const customs = variables
    .flatMap(({ axes }) => axes.map(({ name }) => name))
    .filter((name) => !/^[xyzt]$/.test(name));
  const names = [...Object.keys(COLLECTION_QUERIES[type].parameters), ...new Set(customs)];
  const unknown = [...parameters.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined)
    throw wrongParameter(unknown, "unknown_parameter", `one of ${names.join(", ")}`, unknown);
}

/** Finds what is read along each axis; undefined if there is nothing. */
function selectSteps(
  query: EdrQuery,
  { axes, array: { variable } }: GriddedVariable,
  places: SelectedPlaces,
  isAlong: boolean,
): Map<string, StepSelection> | undefined {
  const selections = new Map(places.selections);
  for (const [at, { name, axis }] of axes.entries()) {
    if (selections.has(name)) continue;
    const parameter = name === "t" ? "datetime" : name;
    const text = name === "z" ? levelsOf(query) : query.parameters.get(parameter);
    const selection: AxisSelection =
      text === undefined
        ? { begin: 0, count: variable.shape[at]!, step: 1 }
        : findSteps(axis, parameter, text);
    const count = pickedLength(selection);
    if (count === 0) return undefined;
    // A path at one time is a trajectory.
    const isStep = query.type === "trajectory" && name === "t" && count === 1 && !isAlong;
    const begin = "indexes" in selection ? selection.indexes[0]! : selection.begin;
    selections.set(
      name,
      isStep ? { kind: "step", selection: { begin, count: 1, step: 1 } } : { kind: "steps", selection },
    );
  }
  return selections;
}

function planOf(
  { context, snapshot }: PlaceSource,
  group: readonly Choice[],
  isDecoded: boolean,
): PlannedCoverage {
  const byKey = new Map<string, DimSelection>();
  for (const { variable, selections } of group)
    for (const [at, { name }] of variable.axes.entries()) {
      const { key } = dimOf(snapshot, variable.array.variable, at);
      byKey.set(key, { parameter: name, ...selections.get(name)! });
    }
  const [{ places, selections, along }] = group as readonly [Choice];
  const parameters = group.map(({ variable }) => variable);
  const chosen = parameters.map(({ array }) => array.variable);
  const plan = createSelectionPlan(snapshot, chosen, byKey, isDecoded, (array) =>
    context.values.dataType(array, isDecoded),
  );
  return { places, parameters, selections, along, plan };
}
