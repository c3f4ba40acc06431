import {
  type ArrayView,
  type Coordinates,
  type DatasetView,
  type ExportedDataset,
  type ExportedVariable,
  POINT,
  parseDataType,
  type StepSelection,
  sliceOfAxis,
  TEXT_TYPE,
  type Values,
  wrongParameter,
  ZpublishError,
} from "../../plugin-api.js";
import { eachText, type PointTable, wrongBody } from "./parse-points.js";
import type { AxisParameter } from "./parse-selection.js";

/** Metres of a degree on the sphere of `nearestCells`. */
const METRES_OF_DEGREE = 111_195.08;
/** A number as JSON has it: `007` is a name. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/**
 * Finds the rows and columns of a curvilinear grid that a query asks for: the smallest box that holds a region, or the cell nearest to
 * a place, or to each of several points.
 * @throws ZpublishError `invalid-query` unless latitudes and longitudes are asked for in one of these forms, or if there are no cells
 */
export async function selectCells(
  values: Pick<Values, "cellBox" | "nearestCells">,
  snapshot: DatasetView,
  array: ArrayView,
  { x: axisX }: NonNullable<Coordinates["grid"]>,
  lat: AxisParameter | undefined,
  lon: AxisParameter | undefined,
): Promise<{ readonly y: StepSelection; readonly x: StepSelection }> {
  const given = [lat, lon].flatMap((asked) => asked?.parameter ?? []);
  const expected =
    "latitude and longitude, both as range a/b or both as nearest::…, since the grid is curvilinear";
  const refusal = () => wrongParameter(given[0]!, "grid", expected, given.join(" and "));
  if (lat === undefined || lon === undefined || lat.query.kind !== lon.query.kind) throw refusal();
  const [north, east] = [lat.query, lon.query];
  const empty = (received: string) =>
    wrongParameter(lat.parameter, "empty_selection", "a region with cells of the grid", received);
  if (north.kind === "range" && east.kind === "range") {
    const boundOf = (asked: AxisParameter) => (text: string | undefined) =>
      text === undefined ? undefined : degrees(text, asked);
    const [south, to] = [north.from, north.to].map(boundOf(lat));
    const [west, last] = [east.from, east.to].map(boundOf(lon));
    const { y, x } = await values.cellBox(snapshot, array, [south, to], [west, last]);
    if (y.count === 0) throw empty(`${north.text}, ${east.text}`);
    const everyNth = (box: typeof y, step: number): StepSelection => ({
      ...{ selection: sliceOfAxis(box, 0, Math.ceil(box.count / step), step), kind: "steps" },
    });
    return { y: everyNth(y, north.step), x: everyNth(x, east.step) };
  }
  const [latitudes, longitudes] = [await degreesOf(lat), await degreesOf(lon)];
  if (latitudes === undefined || longitudes === undefined) throw refusal();
  const places = latitudes.map((latitude, at) => [latitude, longitudes[at]!] as const);
  const cells = await values.nearestCells(snapshot, array, places);
  const width = array.variable.shape[axisX]!;
  if (north.kind !== "points") {
    const [{ cell } = { cell: -1 }] = cells;
    if (cell < 0) throw empty(places.join(", "));
    const at = (begin: number): StepSelection => ({ selection: { begin, count: 1, step: 1 }, kind: "step" });
    return { y: at(Math.floor(cell / width)), x: at(cell % width) };
  }
  const { tolerance } = north;
  const most = tolerance === undefined ? Number.POSITIVE_INFINITY : Number(tolerance || Number.NaN);
  if (!(most >= 0)) throw wrongParameter("tolerance", "float_parsing", "degrees", tolerance ?? "");
  const isNear = (distance: number) => distance <= most * METRES_OF_DEGREE;
  const found = Int32Array.from(cells, ({ cell, distance }) => (isNear(distance) ? cell : -1));
  const of = (indexes: Int32Array): StepSelection => ({ selection: { indexes }, kind: "points" });
  return {
    y: of(found.map((cell) => Math.floor(cell / width))),
    x: of(found.map((cell) => (cell < 0 ? -1 : cell % width))),
  };
}

/** Returns the degrees of a place, or of points; undefined if a query asks for neither. */
async function degreesOf(asked: AxisParameter): Promise<number[] | undefined> {
  const { query } = asked;
  if (query.kind === "points") {
    if (query.method === "nearest")
      return mapTexts(query.points, query.column, (text) => degrees(text, asked));
    throw wrongParameter("method", "grid", "nearest, since the grid is curvilinear", query.method);
  }
  const [label, ...others] = query.kind === "labels" ? query.labels : [];
  return label?.method === "nearest" && others.length === 0 ? [degrees(label.text, asked)] : undefined;
}

function degrees(text: string, { parameter, query }: AxisParameter): number {
  if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
  const place = query.kind === "points" ? "body" : "query";
  throw wrongParameter(parameter, "float_parsing", "a number in degrees", text, place);
}

/**
 * Calls a function once for each distinct text of a column. Labels that it refuses are those of the body.
 * @returns Its result by row.
 */
export async function mapTexts<T>(
  points: PointTable,
  column: number,
  make: (text: string) => T,
): Promise<T[]> {
  const known = new Map<string, T>();
  const made: T[] = [];
  await eachText(points, column, (text) => {
    let value = known.get(text);
    if (value === undefined) {
      value = make(text);
      known.set(text, value);
    }
    made.push(value);
  }).catch((error: unknown) => {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError("invalid-body", error.message, { details: error.details });
  });
  return made;
}

/**
 * Makes variables of the columns that only go with their points.
 * @param keepsTexts Whether columns stay texts; else those of numbers become numbers.
 * @throws ZpublishError `invalid-body` if one has the name of a variable of the answer
 */
export async function carriedColumns(
  { variables }: ExportedDataset,
  points: PointTable,
  isCarried: (name: string) => boolean,
  keepsTexts: boolean,
): Promise<ExportedVariable[]> {
  const taken = new Set([POINT, ...variables.map(({ name }) => name)]);
  const carried: ExportedVariable[] = [];
  for (const [at, column] of points.names.entries()) {
    if (!isCarried(column)) continue;
    const name = column.replaceAll("/", "_");
    if (taken.size === taken.add(name).size)
      throw wrongBody("repeated_column", "a column named unlike the variables of the answer", column);
    const own: string[] = [];
    const numbers: number[] = [];
    await eachText(points, at, (text) => {
      own.push(text);
      if (keepsTexts || numbers.length < own.length - 1) return;
      const number = text === "" ? Number.NaN : Number(text);
      // Longer integers are no doubles.
      if (text === "" || (PLAIN_NUMBER.test(text) && Math.abs(number) <= Number.MAX_SAFE_INTEGER))
        numbers.push(number);
    });
    const isNumber = numbers.length === own.length;
    const doubles = Float64Array.from(isNumber ? numbers : []);
    const bytes = new Uint8Array(doubles.buffer);
    const [shape, dataType] = [[own.length], isNumber ? parseDataType("<f8") : TEXT_TYPE];
    const source = { block: { shape, dataType, bytes, values: isNumber ? doubles : own } };
    carried.push({ name, isCoordinate: true, dims: [POINT], shape, dataType, attrs: {}, source });
  }
  return carried;
}
