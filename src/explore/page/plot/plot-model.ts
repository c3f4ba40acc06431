import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { type AxisValues, INDEX_AXIS, type VariableDescription } from "../../dataset-description.js";
import type { RangeAnswer, TooMuchAnswer } from "../../protocol.js";
import type { ExploreModel, ReadFailure } from "../model.js";
import { otherAxes } from "../resolve-view.js";
import type { RequestOf } from "../worker-client.js";
import { createPlotAxis, type SeriesPlace } from "./plot-axis.js";

/** What is read of a series. */
export interface SeriesState {
  /** In the order of the cells; NaN for missing and for unread ones. Undefined until the first ones are read. */
  readonly values: Float64Array | undefined;
  readonly done: number;
  readonly total: number;
  /** Set if it is more than is read unasked. */
  readonly tooMuch: TooMuchAnswer | undefined;
  readonly failure: ReadFailure | undefined;
  /** Whether chunks are still read. */
  readonly isReading: boolean;
}

/** A histogram: of what is visible, or of a sample of a variable without a picture. */
export interface HistogramState {
  readonly found: RangeAnswer | undefined;
  readonly failure: ReadFailure | undefined;
}

const NOTHING: SeriesState = Object.freeze({
  values: undefined,
  done: 0,
  total: 0,
  tooMuch: undefined,
  failure: undefined,
  isReading: false,
});

/** Reads what the plot shows: a series or a histogram. */
export class PlotModel {
  readonly #model: ExploreModel;
  readonly #place: ReadonlySignal<SeriesPlace | undefined>;
  readonly #key: ReadonlySignal<string | undefined>;
  readonly #isHistogram: ReadonlySignal<boolean>;
  /** Path of the variable that is shown, once its coordinates are read. */
  readonly #path: ReadonlySignal<string | undefined>;
  readonly series = signal<SeriesState>(NOTHING);
  /** The series that {@link series} is of. It is replaced only if another one is read. */
  readonly place = signal<SeriesPlace | undefined>(undefined);
  /** Whether the histogram is of a sample of the whole variable, instead of what is visible. */
  readonly isOfVariable = signal(false);
  readonly histogram = signal<HistogramState>({ found: undefined, failure: undefined });

  #cancel: (() => void) | undefined;
  #histograms = 0;
  /** Path of the variable of {@link histogram}. */
  #histogramOf: string | undefined;
  readonly #stop: readonly (() => void)[];

  constructor(model: ExploreModel) {
    this.#model = model;
    this.#isHistogram = computed(() => model.view.value.probe?.plot === "histogram");
    this.#path = computed(() => model.resolved.value?.variable.path);
    this.#place = computed(() => placeOf(model));
    // Steps of the axis along which the series runs, and everything about the picture, leave it as it is.
    this.#key = computed(() => (this.#isHistogram.value ? undefined : keyOf(this.#place.value)));
    this.#stop = [
      effect(() => {
        const key = this.#key.value;
        untracked(() => this.#readSeries(key, false));
      }),
      effect(() => {
        const request = this.#isHistogram.value ? this.#histogramRequest() : undefined;
        if (request !== undefined) untracked(() => this.#readHistogram(request));
      }),
    ];
  }

  /** Reads the series though it is much, or again what was stopped or failed. */
  confirm(): void {
    this.#readSeries(this.#key.peek(), true);
  }

  /** Stops reading; what is read stays. */
  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.series.value = { ...this.series.peek(), isReading: false };
  }

  /** Ends all reading, when the plot is closed. */
  close(): void {
    for (const stop of this.#stop) stop();
    this.cancel();
    this.#histograms++;
  }

  #readSeries(key: string | undefined, isConfirmed: boolean): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const place = key === undefined ? undefined : this.#place.peek();
    this.place.value = place;
    this.series.value = { ...NOTHING, isReading: place !== undefined };
    if (place === undefined) return;
    const { variable, at, along } = place;
    const request: RequestOf<"series"> = {
      kind: "series",
      selection: { variable: variable.path, at },
      along,
      isConfirmed,
    };
    this.#cancel = this.#model.client.send<"series">(request, (answer) => {
      if (answer.kind === "series") {
        const { values, done, total } = answer;
        this.series.value = { ...NOTHING, values, done, total, isReading: done < total };
      } else if (answer.kind === "too-much") this.series.value = { ...NOTHING, tooMuch: answer };
      else this.series.value = { ...this.series.peek(), failure: answer, isReading: false };
    });
  }

  /** Returns the request of the histogram; undefined while the picture moves. */
  #histogramRequest(): RequestOf<"range"> | undefined {
    const model = this.#model;
    const path = this.#path.value;
    const resolved = model.resolved.peek();
    if (path === undefined || resolved === undefined) return undefined;
    const common = { kind: "range", percentiles: [0, 100] } as const;
    if (resolved.axes === undefined || this.isOfVariable.value)
      return { ...common, selection: { variable: path, at: resolved.at }, axes: resolved.axes };
    const request = model.request.value;
    if (request === undefined || model.camera.isMoving.value || model.isPlaying.value) return undefined;
    const { selection, axes, viewport } = request;
    return { ...common, selection, axes, viewport };
  }

  async #readHistogram(request: RequestOf<"range">): Promise<void> {
    const turn = ++this.#histograms;
    const { variable } = request.selection;
    if (this.#histogramOf !== variable) this.histogram.value = { found: undefined, failure: undefined };
    this.#histogramOf = variable;
    try {
      const found = await this.#model.client.ask<"range">(request);
      if (turn === this.#histograms) this.histogram.value = { found, failure: undefined };
    } catch (error) {
      const { message } = error as Error;
      const failure = { sentence: message, requestId: undefined, mayRetry: true, ...(error as object) };
      if (turn === this.#histograms) this.histogram.value = { found: undefined, failure };
    }
  }
}

/** Returns the series that the view asks for; undefined if there is none, or its place is not found yet. */
function placeOf(model: ExploreModel): SeriesPlace | undefined {
  const resolved = model.resolved.value;
  if (resolved === undefined || resolved.variable.problem !== undefined) return undefined;
  const { variable, values } = resolved;
  const { probe } = model.view.value;
  const at = variable.form === "image" ? model.probes.fixed.value?.cell : resolved.at;
  if (at === undefined || at.length !== variable.axes.length) return undefined;
  const along = alongOf(variable, probe?.along, resolved.axes);
  const description = variable.axes[along];
  if (description === undefined) return undefined;
  const fixed = model.probes.fixed.value;
  const isOnGrid = variable.curvilinear !== undefined && !model.camera.inCells.value;
  const onGrid = fixed && isOnGrid ? { latitude: fixed.y, longitude: fixed.x } : undefined;
  if (description.coordinate === variable.path) {
    const axis = createPlotAxis({ ...description, dim: "index", role: undefined }, INDEX_AXIS);
    return { variable, values: values.with(along, INDEX_AXIS), at, along, axis, onGrid };
  }
  const attrs =
    description.coordinate === undefined ? undefined : model.variableAt(description.coordinate)?.attrs;
  const axis = createPlotAxis(description, values[along] as AxisValues, attrs);
  return { variable, values, at, along, axis, onGrid };
}

/** Returns the axis of a series: the one that is asked for, else time, else height or depth, else another axis that is not shown. */
export function alongOf(
  variable: VariableDescription,
  asked: string | undefined,
  shown: { readonly x: number; readonly y: number } | undefined,
): number {
  const { axes, dims } = variable;
  const wished = asked === undefined ? -1 : dims.indexOf(asked);
  if (wished >= 0) return wished;
  const long = otherAxes(variable, shown).filter((index) => (axes[index]?.length ?? 0) > 1);
  const byRole = (role: string) => long.find((index) => axes[index]?.role === role);
  return byRole("T") ?? byRole("Z") ?? long[0] ?? shown?.x ?? 0;
}

function keyOf(place: SeriesPlace | undefined): string | undefined {
  if (place === undefined) return undefined;
  const { variable, at, along } = place;
  return [variable.path, along, ...at.map((index, axis) => (axis === along ? "" : index))].join(" ");
}
