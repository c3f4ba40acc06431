import type { WorkerPort } from "../../../src/explore/page/worker-client.js";
import type {
  AxisValues,
  DatasetDescription,
  ExploreAnswer,
  VariableDescription,
  WorkerRequest,
} from "../../../src/explore/protocol.js";

type Kind = WorkerRequest["kind"];
type RequestOf<K extends Kind> = Extract<WorkerRequest, { kind: K }>;
type AnswerBody = ExploreAnswer extends infer Each
  ? Each extends unknown
    ? Omit<Each, "id">
    : never
  : never;

type MessageListener = (event: { readonly data: ExploreAnswer }) => void;
type ErrorListener = (event: { readonly message: string }) => void;

/** A worker that answers what a test tells it to. */
export class StubWorker implements WorkerPort {
  readonly requests: WorkerRequest[] = [];
  readonly #listeners: MessageListener[] = [];
  readonly #errorListeners: ErrorListener[] = [];
  readonly #rules = new Map<Kind, (request: never) => AnswerBody>();

  postMessage(message: WorkerRequest): void {
    this.requests.push(message);
    const rule = this.#rules.get(message.kind);
    if (rule !== undefined) queueMicrotask(() => this.answer(message.id, rule(message as never)));
  }

  addEventListener(type: "message" | "error", listener: (event: never) => void): void {
    if (type === "message") this.#listeners.push(listener as MessageListener);
    else this.#errorListeners.push(listener as ErrorListener);
  }

  /** Answers each request of a kind from now on. */
  on<K extends Kind>(kind: K, rule: (request: RequestOf<K>) => AnswerBody): void {
    this.#rules.set(kind, rule);
  }

  answer(id: number, body: AnswerBody): void {
    for (const listener of this.#listeners) listener({ data: { id, ...body } as ExploreAnswer });
  }

  crash(message: string): void {
    for (const listener of this.#errorListeners) listener({ message });
  }

  /** Returns the requests of a kind so far. */
  of<K extends Kind>(kind: K): RequestOf<K>[] {
    return this.requests.filter((request): request is RequestOf<K> => request.kind === kind);
  }
}

const NO_PACKING = {
  missing: [],
  validMin: -Infinity,
  validMax: Infinity,
  scale: 1,
  offset: 0,
  isUnsigned: undefined,
};
const FLOAT = {
  kind: "f",
  itemSize: 4,
  byteOrder: "<",
  zarr: "<f4",
  numpyName: "float32",
  numpyStr: "float32",
} as const;

/** Describes a variable of times, latitudes and longitudes on a global grid of four degrees. */
export function describeVariable(path: string, part: Partial<VariableDescription> = {}): VariableDescription {
  const axis = { role: undefined, isLatitude: false, isLongitude: false };
  return {
    path,
    name: path,
    dims: ["time", "lat", "lon"],
    shape: [8, 45, 90],
    chunkShape: [1, 45, 90],
    dataType: FLOAT,
    attrs: {},
    packing: NO_PACKING,
    title: path,
    units: "K",
    isCoordinate: false,
    isCategorical: false,
    form: "image",
    axes: [
      { ...axis, dim: "time", length: 8, role: "T", coordinate: "time" },
      { ...axis, dim: "lat", length: 45, role: "Y", coordinate: "lat", isLatitude: true },
      { ...axis, dim: "lon", length: 90, role: "X", coordinate: "lon", isLongitude: true },
    ],
    plane: { y: 1, x: 2 },
    curvilinear: undefined,
    levels: [],
    problem: undefined,
    ...part,
  };
}

/** Dataset of two variables on the same grid, and one without a picture. */
export const DATASET: DatasetDescription = {
  attrs: {},
  variables: [
    describeVariable("t2m"),
    describeVariable("rain", { units: "mm" }),
    describeVariable("station", {
      form: "text",
      dims: [],
      shape: [],
      chunkShape: [],
      axes: [],
      plane: undefined,
    }),
  ],
};

const NONE = {
  numbers: undefined,
  texts: undefined,
  bounds: undefined,
  units: undefined,
  calendar: undefined,
};

/** Values of the axes of {@link describeVariable}. */
export const AXES: readonly AxisValues[] = [
  {
    ...NONE,
    numbers: Float64Array.from({ length: 8 }, (_, step) => step * 6),
    texts: Array.from(
      { length: 8 },
      (_, step) => `2013-01-0${1 + Math.floor(step / 4)}T${["00", "06", "12", "18"][step % 4]}:00:00`,
    ),
    calendar: "standard",
  },
  { ...NONE, numbers: Float64Array.from({ length: 45 }, (_, row) => 88 - 4 * row), units: "degrees_north" },
  { ...NONE, numbers: Float64Array.from({ length: 90 }, (_, column) => 4 * column), units: "degrees_east" },
];
