import { cfTimeFormatter } from "../cf/cf-time.js";
import { type Axis, createAxis } from "./axis.js";
import { unpacked } from "./byte-scale.js";
import { PRIORITY } from "./chunk-queue.js";
import type { AxisValues, VariableDescription } from "./dataset-description.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { ReadFailure } from "./fetch-bytes.js";
import { timeText } from "./value-text.js";

/** Longest coordinate that is read: a longer axis counts cells. */
const MAX_VALUES = 2 ** 22;

/** Reads the coordinates of a dataset, each once. */
export class AxisReader {
  readonly #session: DatasetSession;
  readonly #values = new Map<string, Promise<AxisValues>>();

  constructor(session: DatasetSession) {
    this.#session = session;
  }

  /** Reads the coordinate of an axis; undefined if it has none. @throws ReadFailure */
  async values(variable: VariableDescription, axis: number): Promise<AxisValues | undefined> {
    const { coordinate, length } = variable.axes[axis]!;
    if (coordinate === undefined || length > MAX_VALUES) return undefined;
    let values = this.#values.get(coordinate);
    if (values === undefined) {
      values = readAxisValues(this.#session, coordinate);
      this.#values.set(coordinate, values);
      // A failure is not kept: another attempt may succeed.
      values.catch(() => this.#values.delete(coordinate));
    }
    return values;
  }

  /** Returns the places of the cells of an axis. @throws ReadFailure */
  async axis(variable: VariableDescription, axis: number): Promise<Axis> {
    const { length, isLatitude, isLongitude } = variable.axes[axis]!;
    return createAxis(length, await this.values(variable, axis), { isLatitude, isLongitude });
  }
}

async function readAxisValues(session: DatasetSession, path: string): Promise<AxisValues> {
  const variable = session.variable(path);
  const values = await readWhole(session, variable);
  if (values.texts !== undefined)
    return {
      numbers: undefined,
      texts: values.texts,
      bounds: undefined,
      units: undefined,
      calendar: undefined,
    };
  const { attrs, dataType, units } = variable;
  const numbers = values.numbers as Float64Array<ArrayBuffer>;
  if (dataType.kind === "M") {
    const texts = Array.from(values.exact ?? [], (stored) => timeText(stored as bigint, dataType));
    const times = { units: "seconds since 1970-01-01", calendar: "proleptic_gregorian" };
    return { numbers: secondsOf(numbers, dataType.timeUnit), texts, bounds: undefined, ...times };
  }
  const format = cfTimeFormatter(attrs);
  const isTime = format !== undefined;
  return {
    numbers,
    texts: isTime
      ? Array.from(numbers, (number, index) => {
          const exact = values.exact?.[index];
          return format(typeof exact === "bigint" && !Number.isNaN(number) ? exact : number);
        })
      : undefined,
    bounds: await readBounds(session, variable),
    units: isTime ? String(attrs.units) : (units ?? (dataType.kind === "m" ? dataType.timeUnit : undefined)),
    calendar: isTime ? String(attrs.calendar ?? "standard").toLowerCase() : undefined,
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
  return (await readWhole(session, bounds)).numbers;
}

/** Values of a whole array in C order: unpacked numbers, NaN for missing ones, or texts. */
export interface WholeArray {
  readonly numbers: Float64Array<ArrayBuffer> | undefined;
  readonly texts: readonly string[] | undefined;
  /** 64-bit integers as they are. */
  readonly exact: (bigint | number)[] | undefined;
}

/** Reads a whole array, which must be small. @throws ReadFailure */
export async function readWhole(session: DatasetSession, variable: VariableDescription): Promise<WholeArray> {
  const { path, shape, chunkShape, packing, dataType } = variable;
  const count = shape.reduce((product, length) => product * length, 1);
  if (count > MAX_VALUES)
    throw new ReadFailure(`"${path}" has ${count} values, more than are read at once (${MAX_VALUES}).`);
  const source = { level: 0, path };
  const strides = session.stridesOf(source);
  const chunks = new Map<string, Promise<Chunk>>();
  const { signal } = new AbortController();
  const read = (coords: readonly number[]) => {
    const key = coords.join(".");
    let chunk = chunks.get(key);
    if (chunk === undefined) {
      chunk = session.queue.read(session.job(source, coords), PRIORITY.coordinate, signal);
      chunks.set(key, chunk);
    }
    return chunk;
  };
  const grid = shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!));
  const coordsList = [...indicesOf(grid)];
  const all = await Promise.all(coordsList.map(read));
  const byKey = new Map(coordsList.map((coords, index) => [coords.join("."), all[index]]));
  const isText = all.some((chunk) => chunk?.texts !== undefined) || "SUO".includes(dataType.kind);
  const numbers = isText ? undefined : new Float64Array(count);
  const texts: string[] | undefined = isText ? [] : undefined;
  const exact: (bigint | number)[] | undefined =
    dataType.itemSize === 8 && "iuMm".includes(dataType.kind) ? [] : undefined;
  let position = 0;
  for (const cell of indicesOf(shape)) {
    const coords = cell.map((index, axis) => Math.floor(index / chunkShape[axis]!));
    const chunk = byKey.get(coords.join("."));
    const offset = cell.reduce(
      (sum, index, axis) => sum + (index - coords[axis]! * chunkShape[axis]!) * strides[axis]!,
      0,
    );
    texts?.push(chunk?.texts?.[offset] ?? "");
    exact?.push(chunk?.exact?.[offset] ?? Number.NaN);
    if (numbers !== undefined)
      numbers[position] =
        chunk?.numbers === undefined ? Number.NaN : unpacked(chunk.numbers[offset]!, packing);
    position++;
  }
  return { numbers, texts, exact };
}

/** Yields all indices of a shape in C order; one without axes for a scalar, none if an axis has no length. */
export function* indicesOf(shape: readonly number[]): Generator<readonly number[]> {
  const count = shape.reduce((product, length) => product * length, 1);
  const index = shape.map(() => 0);
  for (let position = 0; position < count; position++) {
    yield index.slice();
    for (let axis = shape.length - 1; axis >= 0; axis--) {
      index[axis] = index[axis]! + 1;
      if (index[axis]! < shape[axis]!) break;
      index[axis] = 0;
    }
  }
}

const SECONDS: Readonly<Record<string, number>> = {
  W: 604_800,
  D: 86_400,
  h: 3600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  ns: 1e-9,
  ps: 1e-12,
  fs: 1e-15,
  as: 1e-18,
};

function secondsOf(numbers: Float64Array<ArrayBuffer>, unit = "s"): Float64Array<ArrayBuffer> {
  const [, count = "", name = ""] = /^(\d*)(\w+)$/.exec(unit) ?? [];
  const factor = (SECONDS[name] ?? 1) * Number(count || 1);
  return numbers.map((number) => (number === -(2 ** 63) ? Number.NaN : number * factor));
}
