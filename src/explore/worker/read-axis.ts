import { cfTimeFormatter } from "../../cf/cf-time.js";
import { type Axis, cellAxis, createAxis } from "../axis.js";
import { type AxisValues, INDEX_AXIS, type VariableDescription } from "../dataset-description.js";
import type { AxisAnswer, PictureAxes } from "../protocol.js";
import { timeText } from "../value-text.js";
import type { DatasetSession } from "./dataset-session.js";
import { CurvilinearReader } from "./picture/curvilinear-reader.js";
import { MAX_WHOLE_VALUES, readWhole } from "./read-whole.js";

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
  const [values, curvilinearExtent] = await Promise.all([
    axes.values(variable, axis),
    isOnMap ? axes.curvilinear.extent(variable, axis) : undefined,
  ]);
  return { kind: "axis", values: values ?? INDEX_AXIS, curvilinearExtent };
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

async function readAxisValues(session: DatasetSession, path: string): Promise<AxisValues> {
  const variable = session.variable(path);
  const values = await readWhole(session, variable);
  if (values.texts !== undefined) return { ...INDEX_AXIS, texts: values.texts };
  const { attrs, dataType, units } = variable;
  const numbers = values.numbers as Float64Array<ArrayBuffer>;
  if (dataType.kind === "M") {
    const texts = Array.from(values.exact ?? [], (stored) => timeText(stored, dataType));
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
