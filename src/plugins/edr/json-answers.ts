import {
  createSlice,
  elementCount,
  type JsonObject,
  type JsonValue,
  jsonValues,
  labelText,
  parseDataType,
  type StepSelection,
  stringifyJson,
  stringifyJsonPieces,
  type TableRows,
  tableColumns,
  tableRows,
  type ValueBlock,
  type Values,
  ZpublishError,
} from "../../plugin-api.js";
import { CRS84, stepIndexes } from "./edr-query.js";
import { axisNamed, describeParameters, isGregorian, type NamedAxis } from "./gridded-variable.js";
import type { PlannedCoverage } from "./plan-coverages.js";

/**
 * Writes coverages as CoverageJSON (OGC 21-069r2): one coverage, or a collection of several.
 * @returns Pieces of text; an error of the first values comes before any piece.
 */
export async function* writeCoverageJson(
  coverages: readonly PlannedCoverage[],
  values: Values,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const isOne = coverages.length === 1;
  let text = isOne ? "" : '{"type":"CoverageCollection","coverages":[';
  for (const [index, coverage] of coverages.entries()) {
    const { parameters, plan, places, selections } = coverage;
    const head = {
      type: "Coverage",
      domain: await domainOf(coverage),
      parameters: describeParameters(parameters),
    };
    const domain = await joinTexts(stringifyJsonPieces(head), "");
    text += `${index === 0 ? "" : ","}${domain.slice(0, -1)},"ranges":{`;
    for (const [at, { array, axes }] of parameters.entries()) {
      const variable = plan.variables.find(({ source }) => "array" in source && source.array === array)!;
      const { shape, dataType, source } = variable;
      const kept = ("array" in source ? source.kept : []).map((axis) => axes[axis]!);
      const axisNames = kept.map(({ name, key }) =>
        selections.get(key)!.kind === "points" ? "composite" : name,
      );
      const type = { type: "NdArray", dataType: dataType.kind === "f" ? "float" : "integer" };
      const range = stringifyJson(shape.length > 0 ? { ...type, axisNames, shape } : type);
      text += `${at === 0 ? "" : ","}${JSON.stringify(array.variable.path)}:${range.slice(0, -1)},"values":`;
      const mask = places.mask && masked(places.mask, axisNames, shape);
      for await (const piece of jsonValues(plan, variable, values, signal, [elementCount(shape)], mask)) {
        yield text === "" ? piece : Buffer.concat([Buffer.from(text), piece]);
        text = "";
      }
      text += "}";
    }
    text += "}}";
  }
  yield Buffer.from(isOne ? text : `${text}]}`);
}

/** Joins texts. Other requests are answered while these are made. */
async function joinTexts(texts: Iterable<string>, separator: string): Promise<string> {
  const made: string[] = [];
  const slice = createSlice();
  for (const text of texts) {
    made.push(text);
    if (slice.isOver()) await slice.next();
  }
  return made.join(separator);
}

const DOUBLE = parseDataType("<f8");

/** Returns a function that makes the items of a block NaN that are outside of a mask of y and x. */
function masked(mask: Uint8Array, names: readonly string[], shape: readonly number[]) {
  const [y, x] = ["y", "x"].map((name) => names.indexOf(name)) as [number, number];
  const [below, beside] = [y, x].map((at) => elementCount(shape.slice(at + 1))) as [number, number];
  const cellOf = (item: number) =>
    (Math.floor(item / below) % shape[y]!) * shape[x]! + (Math.floor(item / beside) % shape[x]!);
  return ({ values, dataType }: ValueBlock, first: number): Pick<ValueBlock, "values" | "dataType"> => {
    const items = Float64Array.from(values as ArrayLike<number | bigint>, (value, at) =>
      mask[cellOf(first + at)] === 1 ? Number(value) : Number.NaN,
    );
    return { values: items, dataType: dataType.kind === "f" ? dataType : DOUBLE };
  };
}

/** Describes where the values of a coverage are, with the longitudes and latitudes of the centres of cells. */
async function domainOf({ places, parameters, selections }: PlannedCoverage): Promise<JsonObject> {
  const others = parameters[0]!.axes.filter(({ name }) => name !== "x" && name !== "y");
  const labels = new Map<string, readonly (string | number)[]>();
  for (const axis of others) labels.set(axis.name, await labelsOf(axis, selections.get(axis.key)!));
  const kinds = new Map(parameters[0]!.axes.map(({ name, key }) => [name, selections.get(key)!.kind]));
  const isPoints = kinds.get("x") === "points";
  // Points have labels of their own on further axes. A path at one time has it in each of its tuples.
  const isInTuple = (name: string) => isPoints && labels.has(name) && kinds.get(name) !== "steps";
  const names = [...["t"].filter(isInTuple), "x", "y", ...["z"].filter(isInTuple)];
  const lists = new Map<string, ArrayLike<string | number>>([...labels, ["x", places.x], ["y", places.y]]);
  const tuples = () =>
    Array.from(places.x, (_, at) => names.map((name) => lists.get(name)![at] ?? lists.get(name)![0]!));
  const horizontal = isPoints
    ? { composite: { dataType: "tuple", coordinates: names, values: tuples() } }
    : { x: { values: [...places.x] }, y: { values: [...places.y] } };
  const own = [...labels].filter(([name]) => !isInTuple(name));
  const type = domainTypeOf(kinds.get("x")!, new Map(own), isInTuple("t"));
  return {
    type: "Domain",
    ...(type && { domainType: type }),
    axes: { ...horizontal, ...Object.fromEntries(own.map(([name, values]) => [name, { values }])) },
    referencing: [
      { coordinates: ["x", "y"], system: { type: "GeographicCRS", id: CRS84 } },
      ...others.map(referenceOf),
    ],
  };
}

/** Returns the domain type (CoverageJSON section 9.11) of axes; undefined if there is none of such axes. */
function domainTypeOf(
  kind: StepSelection["kind"],
  labels: ReadonlyMap<string, readonly unknown[]>,
  hasTime: boolean,
): string | undefined {
  const [times, levels] = [labels.get("t")?.length ?? 0, labels.get("z")?.length ?? 0];
  if ([...labels.keys()].some((name) => name !== "t" && name !== "z")) return undefined;
  if (kind === "points") {
    if (levels > (hasTime ? 1 : 0)) return undefined;
    return hasTime ? "Trajectory" : times > 0 ? "MultiPointSeries" : "MultiPoint";
  }
  if (kind === "steps" || (times > 1 && levels > 1)) return "Grid";
  if (levels > 1) return "VerticalProfile";
  return times > 1 ? "PointSeries" : "Point";
}

async function labelsOf(
  { name, axis }: NamedAxis,
  { selection }: StepSelection,
): Promise<(string | number)[]> {
  const suffix = name === "t" && isGregorian(axis.calendar) ? "Z" : "";
  const labels: (string | number)[] = [];
  const slice = createSlice();
  for (const index of stepIndexes(selection)) {
    labels.push(name === "z" ? Number(axis.values?.[index] ?? index) : labelText(axis, index) + suffix);
    if (slice.isOver()) await slice.next();
  }
  return labels;
}

const CALENDARS = "https://cfconventions.org/cf-conventions/cf-conventions.html#calendar";

function referenceOf({ name, axis }: NamedAxis): JsonObject {
  if (name === "t") {
    const calendar = isGregorian(axis.calendar) ? "Gregorian" : `${CALENDARS}-${axis.calendar}`;
    return { coordinates: ["t"], system: { type: "TemporalRS", calendar } };
  }
  const label = { en: axis.dim };
  const unit = axis.units === undefined ? {} : { unit: { symbol: axis.units } };
  const system =
    name === "z"
      ? { type: "VerticalCRS", cs: { csAxes: [{ name: label, ...unit }] } }
      : { type: "IdentifierRS", targetConcept: { label } };
  return { coordinates: [name], system };
}

/** Most features of an answer. */
const MAX_FEATURES = 100_000;

/**
 * Returns a function that writes values at points as features of GeoJSON (EDR section 8.3): a row of the table is one feature.
 * @throws ZpublishError `too-large`
 */
export function writeEdrGeojson(
  { plan, parameters }: PlannedCoverage,
  url: string,
  values: Values,
): (signal: AbortSignal) => AsyncGenerator<Uint8Array> {
  const count = elementCount([...plan.dims.values()]);
  if (count > MAX_FEATURES)
    throw new ZpublishError("too-large", `Expected at most ${MAX_FEATURES} features, received ${count}`);
  const names = parameters.map(({ array }) => array.variable.path);
  const { grid } = parameters[0]!.coordinates;
  const axes = parameters.flatMap((each) => each.axes);
  const [x, y, t] = ["x", "y", "t"].map((name) => axisNamed({ axes }, name));
  const columns = tableColumns(plan);
  const columnOf = (path: string | undefined) =>
    columns.findIndex(({ name }) => name === path?.replaceAll("/", "_"));
  const [east, north] = [columnOf(grid?.longitude ?? x?.variable), columnOf(grid?.latitude ?? y?.variable)];
  const time = columnOf(t?.variable);
  const suffix = isGregorian(t?.calendar) ? "Z" : "";
  function* features({ columns: blocks, rowCount }: TableRows): Generator<string> {
    for (let row = 0; row < rowCount; row++) {
      const cells = blocks.map(({ values }): JsonValue => {
        const value = values?.[row] ?? null;
        return typeof value === "number" && !Number.isFinite(value) ? null : value;
      });
      const coordinates = [Number(cells[east]), Number(cells[north])];
      const properties = {
        ...Object.fromEntries(columns.map(({ name }, at) => [name, cells[at]!])),
        datetime: time < 0 ? "" : `${cells[time]}${suffix}`,
        ...{ "parameter-name": names, label: coordinates.toReversed().join(", "), edrqueryendpoint: url },
      };
      yield stringifyJson({ type: "Feature", geometry: { type: "Point", coordinates }, properties });
    }
  }
  return async function* (signal) {
    let text = `{"type":"FeatureCollection","parameters":${stringifyJson(Object.values(describeParameters(parameters)))},"features":[`;
    for await (const rows of tableRows(plan, columns, values, signal)) {
      yield Buffer.from(text + (await joinTexts(features(rows), ",")));
      text = ",";
    }
    yield Buffer.from(text === "," ? "]}" : `${text}]}`);
  };
}
