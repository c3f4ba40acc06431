import { setTimeout } from "node:timers/promises";
import { packingOf } from "../../../src/cf/packing.js";
import { ExploreModel } from "../../../src/explore/page/model.js";
import { parseViewHash } from "../../../src/explore/page/view-hash.js";
import { WorkerClient, type WorkerPort } from "../../../src/explore/page/worker-client.js";
import {
  type AxisValues,
  type DatasetDescription,
  type ExploreAnswer,
  INDEX_AXIS,
  type VariableDescription,
  type WorkerRequest,
} from "../../../src/explore/protocol.js";
import { parseDataType } from "../../../src/model/data-type.js";

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

/** Describes a variable of times, latitudes and longitudes on a global grid of four degrees. */
export function describeVariable(path: string, part: Partial<VariableDescription> = {}): VariableDescription {
  const axis = { role: undefined, isLatitude: false, isLongitude: false };
  return {
    path,
    name: path,
    dims: ["time", "lat", "lon"],
    shape: [8, 45, 90],
    chunkShape: [1, 45, 90],
    dataType: parseDataType("<f4"),
    attrs: {},
    packing: packingOf({}),
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
    projection: undefined,
    unplaced: undefined,
    levels: [],
    bands: undefined,
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

/** Returns values of an axis: numbers, and what else is known of them. */
export function axisValues(numbers: readonly number[], part: Partial<AxisValues> = {}): AxisValues {
  return { ...INDEX_AXIS, numbers: Float64Array.from(numbers), ...part };
}

/** Values of the axes of {@link describeVariable}. */
export const AXES: readonly AxisValues[] = [
  axisValues(
    Array.from({ length: 8 }, (_, step) => step * 6),
    {
      texts: Array.from({ length: 8 }, (_, step) => {
        const hour = String((step % 4) * 6).padStart(2, "0");
        return `2013-01-0${1 + Math.floor(step / 4)}T${hour}:00:00`;
      }),
      calendar: "standard",
    },
  ),
  axisValues(
    Array.from({ length: 45 }, (_, row) => 88 - 4 * row),
    { units: "degrees_north" },
  ),
  axisValues(
    Array.from({ length: 90 }, (_, column) => 4 * column),
    { units: "degrees_east" },
  ),
];

/** Range that {@link openModel}'s worker finds for any variable. */
export const FOUND = {
  kind: "range",
  range: { low: 240, high: 300, isDiverging: false },
  least: 230,
  greatest: 310,
  bins: [1, 3],
  count: 4,
  missing: 2,
} as const;

const SOURCE = {
  ...{ overviews: undefined, select: undefined, maxSelectionBytes: 0 },
  maps: { tiles: undefined, wms: undefined },
  ...{ group: "", dataset: "x", title: "x", page: "http://x/" },
  ...{ unversioned: "x", versions: undefined },
};

/** Opens a model at an address, on a stub that answers all but pictures, places and series. */
export async function openModel(hash = "", variables = DATASET.variables, ratio = 2) {
  const worker = new StubWorker();
  worker.on("open", () => ({ kind: "opened", dataset: { attrs: {}, variables } }));
  worker.on("axis", ({ axis }) => ({ kind: "axis", values: AXES[axis]!, extent: undefined }));
  worker.on("range", () => FOUND);
  const source = { ...SOURCE, store: "http://x/zarr/", coasts: { coarse: "", fine: "" }, token: "secret" };
  const model = new ExploreModel(new WorkerClient(worker), source);
  model.view.value = parseViewHash(hash).view;
  model.camera.canvas.value = { width: 36, height: 18, ratio };
  await model.open();
  return { worker, model };
}

/** Waits for what follows from answers of the stub, or from a timer. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await setTimeout(1);
}
