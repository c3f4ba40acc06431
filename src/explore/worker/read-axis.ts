import { labelText } from "../../cf/axis-labels.js";
import { type DecodedCoordinate, decodeCoordinate } from "../../codec/items/decode-coordinate.js";
import { itemValues, type NumericArray } from "../../codec/items/item-values.js";
import { elementCount } from "../../model/data-tree.js";
import { parseDataType } from "../../model/data-type.js";
import { encodeFillItem, NOT_A_TIME } from "../../model/fill-value.js";
import { type Axis, cellAxis, createAxis } from "../axis.js";
import {
  type AxisAnswer,
  type AxisValues,
  type GridExtent,
  INDEX_AXIS,
  type PictureAxes,
  type ProbeRequest,
  type Selection,
  type ShowRequest,
  type TextAnswer,
  type TextRequest,
  type VariableDescription,
} from "../protocol.js";
import { valueText } from "../value-text.js";
import { finestOf, MAX_WHOLE_VALUES } from "./array-reader.js";
import { PRIORITY, ReadFailure } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { near, nearestPlace, polygonsOfGrid } from "./picture/cells-on-map.js";
import {
  type CellsOnMap,
  polygonsOnMap,
  readListedCells,
  type WholeNumbers,
} from "./picture/read-listed-cells.js";
import type { ReadableDocument } from "./readable-document.js";

/** Values as they are stored, halves widened. */
type StoredValues = NumericArray | string[];

/**
 * Reads the stored values of a whole array, or of one step of it; undefined if these are complex numbers.
 * @param step Indices along the first axes, of which only these are read.
 * @throws ReadFailure
 */
export async function readStoredValues(
  session: DatasetSession,
  variable: VariableDescription,
  step: readonly number[] = [],
  maxValues = MAX_WHOLE_VALUES,
): Promise<StoredValues | undefined> {
  const { path, shape, chunkShape } = variable;
  const source = finestOf(variable);
  const count = elementCount(shape.slice(step.length));
  if (count > maxValues)
    throw new ReadFailure(`"${path}" has ${count} values, more than are read at once (${maxValues}).`);
  const grid = shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!)).slice(step.length);
  const outer = step.map((index, axis) => Math.floor(index / chunkShape[axis]!));
  const chunks = await Promise.all(
    Array.from(indicesOf(grid), async (inner) => {
      const coords = [...outer, ...inner];
      return { coords, chunk: await session.queue.read(session.job(source, coords), PRIORITY.coordinate) };
    }),
  );
  const document = session.documentOf(source);
  const values = filledValues(variable, count, document);
  if (values !== undefined)
    for (const { coords, chunk } of chunks) copyChunk(values, chunk, coords, step, document);
  return values;
}

/** Returns stored values of absent chunks. Without a fill value they are missing, or 0 if the type has no such value. */
function filledValues(
  { dataType }: VariableDescription,
  count: number,
  { fillValue, fillText }: ReadableDocument,
): StoredValues | undefined {
  const { kind, itemSize } = dataType;
  if ("SUO".includes(kind)) return new Array<string>(count).fill(fillText);
  const type = { ...dataType, byteOrder: "<" } as const;
  const values = itemValues(new Uint8Array(count * itemSize), type) as NumericArray | undefined;
  const none = kind === "f" ? "NaN" : "Mm".includes(kind) ? "NaT" : 0;
  return values?.fill(itemValues(encodeFillItem(fillValue ?? none, type), type)![0] as never);
}

function copyChunk(
  values: StoredValues,
  chunk: Chunk,
  coords: readonly number[],
  step: readonly number[],
  { shape, chunkShape, strides }: ReadableDocument,
): void {
  const stored = chunk?.texts ?? chunk?.exact ?? chunk?.numbers;
  if (stored === undefined) return;
  const begins = coords.map((index, axis) => index * chunkShape[axis]!);
  const lengths = chunkShape.map((length, axis) =>
    axis < step.length ? 1 : Math.min(length, shape[axis]! - begins[axis]!),
  );
  const strideTo = shape.map((_, axis) => (axis < step.length ? 0 : elementCount(shape.slice(axis + 1))));
  const fromBegin = step.reduce((sum, index, axis) => sum + (index - begins[axis]!) * strides[axis]!, 0);
  const toBegin = begins.reduce((sum, begin, axis) => sum + begin * strideTo[axis]!, 0);
  const count = elementCount(lengths);
  for (let place = 0; place < count; place++) {
    const from = fromBegin + offsetAt(place, lengths, strides);
    values[toBegin + offsetAt(place, lengths, strideTo)] = stored[from]!;
  }
}

/** Decodes a coordinate as the server does. A fill value 0 is one of its numbers, such as the longitude 0. */
function decoded(
  session: DatasetSession,
  variable: VariableDescription,
  values: StoredValues | undefined,
): DecodedCoordinate {
  const { dataType, attrs } = variable;
  const { fillValue } = session.documentOf(finestOf(variable));
  const isWidened = values instanceof Float32Array;
  const type = isWidened ? parseDataType("<f4") : ({ ...dataType, byteOrder: "<" } as const);
  const bytes = ArrayBuffer.isView(values) ? new Uint8Array(values.buffer) : new Uint8Array();
  return decodeCoordinate({ values, bytes, dataType: type }, attrs, fillValue);
}

/** Returns decoded numbers as floats, NaN for missing ones; undefined for texts. */
function numbersOf({ values }: DecodedCoordinate): Float64Array<ArrayBuffer> | undefined {
  if (values instanceof BigInt64Array)
    return Float64Array.from(values, (value) => (value === NOT_A_TIME ? Number.NaN : Number(value)));
  return values instanceof Float64Array ? (values as Float64Array<ArrayBuffer>) : undefined;
}

/** Reads the numbers of a coordinate, with parameters as of {@link readStoredValues}. @throws ReadFailure, also if it holds none */
async function readNumbers(
  session: DatasetSession,
  variable: VariableDescription,
  step?: readonly number[],
  maxValues?: number,
): Promise<Float64Array<ArrayBuffer>> {
  const values = await readStoredValues(session, variable, step, maxValues);
  const numbers = numbersOf(decoded(session, variable, values));
  if (numbers === undefined) throw new ReadFailure(`“${variable.path}” holds no numbers.`);
  return numbers;
}

/** Returns the offset of a cell of a box, counted in C order, in values that are laid out by strides. */
export function offsetAt(place: number, lengths: readonly number[], strides: readonly number[]): number {
  let [rest, offset] = [place, 0];
  for (let axis = lengths.length - 1; axis >= 0; axis--) {
    offset += (rest % lengths[axis]!) * strides[axis]!;
    rest = Math.floor(rest / lengths[axis]!);
  }
  return offset;
}

/** Yields all indices of a shape in C order; one without axes for a scalar, none if an axis has no length. */
export function* indicesOf([length, ...inner]: readonly number[]): Generator<readonly number[]> {
  if (length === undefined) yield [];
  else
    for (let index = 0; index < length; index++) for (const rest of indicesOf(inner)) yield [index, ...rest];
}

/** Most values of an array with corners of cells. */
const MAX_CORNERS = 8 * MAX_WHOLE_VALUES;
/** Wider grids go all the way round. */
const MAX_REGION_DEGREES = 350;

/** A cell of a picture, and its centre. */
export type FoundCell = Readonly<Record<"row" | "column" | "x" | "y", number>>;

/** Cells under the pixels of a map, in C order of their grid; -1 for none. */
export interface CellsUnderPixels {
  readonly cells: Int32Array;
  readonly columns: number;
}

/** Reads curvilinear grids and lists of places, each once, and finds the cells under pixels. */
export class CurvilinearReader {
  readonly #session: DatasetSession;
  readonly #grids = new Map<string, Promise<CellsOnMap>>();
  /** Whether a grid stays where it is, by the path of its latitudes. */
  readonly #fixed = new Map<string, Promise<boolean>>();
  /** Cells of the last viewport: while playing, it stays. */
  #last: { readonly key: string; readonly grid: CellsOnMap; readonly cells: Int32Array } | undefined;

  constructor(session: DatasetSession) {
    this.#session = session;
  }

  /** Returns the cells under the pixels of a viewport. @throws ReadFailure */
  async cells({ selection, viewport }: ShowRequest): Promise<CellsUnderPixels> {
    const { box, width, height, ratio } = viewport;
    const grid = await this.#grid(selection);
    const key = JSON.stringify([box, width, height, ratio]);
    if (this.#last?.key !== key || this.#last.grid !== grid)
      this.#last = { key, grid, cells: grid.under({ ...box, width, height, ratio }) };
    return { cells: this.#last.cells, columns: grid.columns };
  }

  /** Returns the row and column of the cell at a place, and its centre; undefined if there is none. @throws ReadFailure */
  async cellAt({ selection, x, y, reach, towards }: ProbeRequest): Promise<FoundCell | undefined> {
    const { at, centres, columns } = await this.#grid(selection);
    const next = towards === undefined ? -1 : nearestPlace(centres, x, y, Number.POSITIVE_INFINITY, towards);
    const cell = next === -1 ? at(x, y, reach ?? Number.POSITIVE_INFINITY) : next;
    if (cell === -1) return undefined;
    const row = Math.floor(cell / columns);
    return { row, column: cell % columns, x: centres.longitudes[cell]!, y: centres.latitudes[cell]! };
  }

  /** Returns the extent of a variable's cells, of all steps that are looked at if they move. @throws ReadFailure */
  async extent(variable: VariableDescription): Promise<GridExtent> {
    const steps = this.#isFixed(variable).then((isFixed) => (isFixed ? [0] : SHARES));
    const shape = variable.shape;
    const grids = await Promise.all(
      (await steps).map((share) =>
        this.#grid({ variable: variable.path, at: shape.map((length) => Math.floor((length - 1) * share)) }),
      ),
    );
    const latitudes = rangeOf(grids.map(({ y }) => y));
    const [about0, about180] = [0, 180].map((middle) =>
      rangeOf(
        grids.map(({ x }) => x),
        (longitude) => near(longitude, middle),
      ),
    ) as [readonly [number, number], readonly [number, number]];
    const longitudes = about180[1] - about180[0] < about0[1] - about0[0] ? about180 : about0;
    const margin = grids[0]!.marginOf(Math.max(longitudes[1] - longitudes[0], latitudes[1] - latitudes[0]));
    const [south, north] = [Math.max(-90, latitudes[0] - margin), Math.min(90, latitudes[1] + margin)];
    const [west, east] = [longitudes[0] - margin, longitudes[1] + margin];
    return east - west > MAX_REGION_DEGREES
      ? { west: -180, east: 180, south, north }
      : { west, east, south, north };
  }

  /** Reads the grid of a step; one that does not move once. */
  async #grid({ variable: path, at }: Selection): Promise<CellsOnMap> {
    const variable = this.#session.variable(path);
    const { latitude, longitude, list } = variable.curvilinear!;
    if (list !== undefined) {
      const key = [latitude, longitude, list.shape, list.corners, list.ragged?.path].join(" ");
      return kept(this.#grids, key, () => readListedCells(variable, list, (each) => this.#readNumbers(each)));
    }
    const steps = this.#stepsOf(variable);
    const isFixed = steps.length === 0 || (await this.#isFixed(variable));
    const step = steps.map(({ place }) => (isFixed || place === -1 ? 0 : (at[place] ?? 0)));
    for (const key of this.#grids.keys()) if (this.#grids.size > MAX_GRIDS) this.#grids.delete(key);
    return kept(this.#grids, `${latitude} ${longitude} ${step}`, () => this.#read(latitude, longitude, step));
  }

  async #readNumbers(path: string): Promise<WholeNumbers> {
    const variable = this.#session.variable(path);
    const numbers = await readNumbers(this.#session, variable, [], MAX_CORNERS);
    return { numbers, shape: variable.shape };
  }

  /** Returns the axes that coordinates have besides rows and columns, and their places among the variable's. */
  #stepsOf({ curvilinear, dims }: VariableDescription) {
    const latitude = this.#session.variable(curvilinear!.latitude);
    return latitude.dims
      .slice(0, -2)
      .map((dim, axis) => ({ length: latitude.shape[axis]!, place: dims.indexOf(dim) }));
  }

  /** Compares the places of the first, the middle and the last step. */
  #isFixed(variable: VariableDescription): Promise<boolean> {
    const { latitude, longitude } = variable.curvilinear!;
    const lengths = this.#stepsOf(variable).map(({ length }) => length);
    if (lengths.every((length) => length === 1)) return Promise.resolve(true);
    const isSame = async (path: string) => {
      const [first, ...others] = await Promise.all(
        SHARES.map(async (share) => {
          const step = lengths.map((length) => Math.floor((length - 1) * share));
          return readNumbers(this.#session, this.#session.variable(path), step);
        }),
      );
      return others.every((other) => other.every((value, index) => Object.is(value, first![index])));
    };
    return kept(this.#fixed, latitude, async () =>
      (await Promise.all([latitude, longitude].map(isSame))).every(Boolean),
    );
  }

  async #read(latitudePath: string, longitudePath: string, step: readonly number[]): Promise<CellsOnMap> {
    const [latitude, longitude] = [latitudePath, longitudePath].map((path) => this.#session.variable(path));
    const [rows, columns] = latitude!.shape.slice(-2) as [number, number];
    const [y, x] = await Promise.all([
      readNumbers(this.#session, latitude!, step),
      readNumbers(this.#session, longitude!, step),
    ]);
    const centres = { latitudes: y, longitudes: x };
    return polygonsOnMap(polygonsOfGrid(centres, rows, columns), columns, centres);
  }
}

/** Grids that are kept: one that moves has as many as there are steps. */
const MAX_GRIDS = 6;

/** Steps of a coordinate that are looked at, as parts of its length. */
const SHARES = [0, 0.5, 1];

function rangeOf(
  arrays: readonly Float64Array[],
  convert = (value: number) => value,
): readonly [number, number] {
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const values of arrays) {
    for (const value of values) {
      if (Number.isNaN(value)) continue;
      const converted = convert(value);
      least = Math.min(least, converted);
      greatest = Math.max(greatest, converted);
    }
  }
  return [least, greatest];
}

/** Reads the coordinates of a dataset, each once. */
export class AxisReader {
  /** Reads grids whose places have two dimensions. */
  readonly curvilinear: CurvilinearReader;
  readonly #session: DatasetSession;
  readonly #values = new Map<string, Promise<AxisValues>>();
  readonly #axes = new Map<string, Promise<Axis>>();

  constructor(session: DatasetSession) {
    this.#session = session;
    this.curvilinear = new CurvilinearReader(session);
  }

  /** Reads the coordinate of an axis; undefined if it has none. @throws ReadFailure */
  async values(variable: VariableDescription, axis: number): Promise<AxisValues | undefined> {
    const { coordinate, length } = variable.axes[axis]!;
    if (coordinate === undefined || length > MAX_WHOLE_VALUES) return undefined;
    return kept(this.#values, coordinate, () => readAxisValues(this.#session, coordinate));
  }

  /** Returns the places of the cells of an axis. @throws ReadFailure */
  axis(variable: VariableDescription, axis: number): Promise<Axis> {
    const { length, coordinate, isLatitude, isLongitude } = variable.axes[axis]!;
    const create = async () =>
      createAxis(length, await this.values(variable, axis), { isLatitude, isLongitude });
    return coordinate === undefined ? create() : kept(this.#axes, coordinate, create);
  }

  /** Returns both axes of a picture, by coordinates or in cells. @throws ReadFailure */
  plane(variable: VariableDescription, { x, y }: PictureAxes, inCells: boolean): Promise<[Axis, Axis]> {
    const axisOf = (axis: number) => (inCells ? cellAxis(variable.shape[axis]!) : this.axis(variable, axis));
    return Promise.all([axisOf(x), axisOf(y)]);
  }
}

/** Answers with the coordinate of an axis. @throws ReadFailure */
export async function answerAxis(
  axes: AxisReader,
  variable: VariableDescription,
  axis: number,
): Promise<AxisAnswer> {
  const { plane, curvilinear } = variable;
  const isOnMap = curvilinear !== undefined && (axis === plane?.x || axis === plane?.y);
  const [values, extent] = await Promise.all([
    axes.values(variable, axis),
    isOnMap ? axes.curvilinear.extent(variable) : undefined,
  ]);
  return { kind: "axis", values: values ?? INDEX_AXIS, extent };
}

/** Keeps what is read; a failure is not kept, as another attempt may succeed. */
function kept<T>(map: Map<string, Promise<T>>, key: string, read: () => Promise<T>): Promise<T> {
  let found = map.get(key);
  if (found === undefined) {
    found = read();
    map.set(key, found);
    found.catch(() => map.delete(key));
  }
  return found;
}

/** Most chunks that a coordinate is read of as a whole. */
const MAX_COORDINATE_CHUNKS = 500;
/** Places at which a coordinate of more chunks is read, and the share of a step by which values there may be off a line. */
const PLACES = 65;
const MAX_OFF_LINE = 0.01;

/** Reads a coordinate of very many chunks at some places. Returns all of its values if those lie on a line, else undefined. @throws ReadFailure */
async function readLine(
  session: DatasetSession,
  variable: VariableDescription,
): Promise<DecodedCoordinate | undefined> {
  const source = finestOf(variable);
  const last = variable.shape[0]! - 1;
  const places = Array.from({ length: PLACES }, (_, place) => Math.round((place * last) / (PLACES - 1)));
  const stored = filledValues(variable, PLACES, session.documentOf(source));
  const readAt = async (index: number, place: number) => {
    const { coords, offset } = session.placeOf(source, [index]);
    const chunk = await session.queue.read(session.job(source, coords), PRIORITY.coordinate);
    const value = (chunk?.exact ?? chunk?.numbers)?.[offset];
    if (stored !== undefined && value !== undefined) stored[place] = value;
  };
  await Promise.all(places.map(readAt));
  const found = decoded(session, variable, stored);
  const numbers = numbersOf(found);
  if (numbers === undefined) return undefined;
  const begin = numbers[0]!;
  const step = (numbers.at(-1)! - begin) / last;
  const isLine = places.every(
    (place, at) => Math.abs(begin + step * place - numbers[at]!) <= Math.abs(step) * MAX_OFF_LINE,
  );
  if (!isLine) return undefined;
  const length = last + 1;
  const { values } = found;
  if (!(values instanceof BigInt64Array))
    return { ...found, values: Float64Array.from({ length }, (_, index) => begin + step * index) };
  const [from, to] = [values[0]!, values.at(-1)!];
  const exactAt = (_: unknown, index: number) => from + ((to - from) * BigInt(index)) / BigInt(last);
  return { ...found, values: BigInt64Array.from(Array.from({ length }, exactAt)) };
}

async function readAxisValues(session: DatasetSession, path: string): Promise<AxisValues> {
  const variable = session.variable(path);
  const [length] = variable.shape as [number];
  const isMany = length / variable.chunkShape[0]! > MAX_COORDINATE_CHUNKS;
  const found = isMany
    ? await readLine(session, variable)
    : decoded(session, variable, await readStoredValues(session, variable));
  if (found?.values === undefined) return INDEX_AXIS;
  const numbers = numbersOf(found);
  if (numbers === undefined) return { ...INDEX_AXIS, texts: found.values as readonly string[] };
  const { dataType, units } = variable;
  const { calendar } = found;
  const axis = { ...found, dim: variable.name, length, role: undefined, variable: path };
  return {
    numbers,
    texts: calendar === undefined ? undefined : Array.from(numbers, (_, index) => labelText(axis, index)),
    bounds: isMany ? undefined : await readBounds(session, variable),
    units: calendar ? found.units : (units ?? (dataType.kind === "m" ? dataType.timeUnit : undefined)),
    calendar,
  };
}

/** Reads the cells' edges by the attribute `bounds` (CF section 7.1); undefined if there are none that can be used. */
async function readBounds(
  session: DatasetSession,
  { path, attrs, shape }: VariableDescription,
): Promise<Float64Array | undefined> {
  if (typeof attrs.bounds !== "string") return undefined;
  const boundsPath = path.replace(/[^/]*$/, attrs.bounds);
  const bounds = session.description.variables.find((variable) => variable.path === boundsPath);
  const fits = bounds?.problem === undefined && bounds?.shape.length === 2;
  if (!fits || bounds.shape[0] !== shape[0] || bounds.shape[1] !== 2) return undefined;
  return readNumbers(session, bounds);
}

/** Reads the first values of a variable as texts, in C order. @throws ReadFailure, or the signal's reason */
export async function answerText(
  session: DatasetSession,
  { variable: path, maxCount }: TextRequest,
  signal: AbortSignal,
): Promise<TextAnswer> {
  const variable = session.variable(path);
  const { shape } = variable;
  const length = elementCount(shape);
  const source = finestOf(variable);
  const texts: string[] = [];
  let read: string | undefined;
  let chunk: Chunk;
  for (const cell of indicesOf(shape)) {
    if (texts.length >= maxCount) break;
    const { coords, offset } = session.placeOf(source, cell);
    if (read !== `${coords}`) {
      read = `${coords}`;
      chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
    }
    texts.push(valueText(variable, chunk, offset));
  }
  return { kind: "text", texts, length };
}
