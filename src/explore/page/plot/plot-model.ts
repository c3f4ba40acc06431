import { computed, effect, type ReadonlySignal, signal, untracked } from "@preact/signals-core";
import { labelWithUnits, withUnits } from "../../../cf/unit-text.js";
import {
  type FailedAnswer,
  INDEX_AXIS,
  otherAxes,
  type RangeAnswer,
  type TooMuchAnswer,
  type VariableDescription,
} from "../../protocol.js";
import { unpackedText } from "../../value-text.js";
import { count, shortDate, stepText } from "../axis-ticks.js";
import { degreesOf } from "../map/plane-box.js";
import type { ExploreModel } from "../model.js";
import type { RequestOf } from "../worker-client.js";
import {
  cellOfPosition,
  createPlotAxis,
  indexPlotAxis,
  isTime,
  type PlotAxis,
  placeText,
  plotValues,
  type SeriesPlace,
  seriesSummary,
  textWithUnits,
} from "./plot-axis.js";
import { histogramCsv, seriesCsv } from "./save-csv.js";

/** What is read of a series. */
interface SeriesState {
  /** In the order of the cells; NaN for missing and for unread ones. Undefined until the first ones are read. */
  readonly values?: Float64Array;
  readonly done: number;
  readonly total: number;
  /** Set if it is more than is read unasked. */
  readonly tooMuch?: TooMuchAnswer;
  readonly failure?: FailedAnswer;
  readonly isReading: boolean;
}

/** A histogram of what is visible, or of a sample of a variable without a picture. */
interface HistogramState {
  readonly variable?: string;
  readonly found?: RangeAnswer;
  readonly failure?: FailedAnswer;
}

const NOTHING: SeriesState = Object.freeze({ done: 0, total: 0, isReading: false });

/** Reads what the plot shows: a series or a histogram. */
export class PlotModel {
  readonly #model: ExploreModel;
  readonly #place: ReadonlySignal<SeriesPlace | undefined>;
  readonly #key: ReadonlySignal<string | undefined>;
  readonly series = signal<SeriesState>(NOTHING);
  /** The place of {@link series}. It is replaced only if another series is read. */
  readonly place = signal<SeriesPlace | undefined>(undefined);
  readonly histogram = signal<HistogramState>({});

  #cancel: (() => void) | undefined;
  readonly #stop: readonly (() => void)[];

  constructor(model: ExploreModel) {
    this.#model = model;
    const isHistogram = computed(() => model.view.value.probe?.plot === "histogram");
    this.#place = computed(() => placeOf(model));
    // Steps of the axis along which the series runs, and everything about the picture, leave it as it is.
    this.#key = computed(() =>
      isHistogram.value || this.#place.value === undefined ? undefined : keyOf(this.#place.value),
    );
    this.#stop = [
      effect(() => {
        const key = this.#key.value;
        untracked(() => this.#readSeries(key, false));
      }),
      effect(() => {
        const request = isHistogram.value ? histogramRequest(model) : undefined;
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
  }

  #readSeries(key: string | undefined, isConfirmed: boolean): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const place = key === undefined ? undefined : this.#place.peek();
    this.place.value = place;
    this.series.value = { ...NOTHING, isReading: place !== undefined };
    if (place === undefined) return;
    const { variable, at, along } = place;
    const selection = { variable: variable.path, at };
    this.#cancel = this.#model.client.send<"series">(
      { kind: "series", selection, along, isConfirmed },
      (answer) => {
        if (answer.kind === "series") {
          const { values, done, total } = answer;
          this.series.value = { values, done, total, isReading: done < total };
        } else if (answer.kind === "too-much") this.series.value = { ...NOTHING, tooMuch: answer };
        else this.series.value = { ...this.series.peek(), failure: answer, isReading: false };
      },
    );
  }

  #readHistogram(request: RequestOf<"range">): void {
    this.#cancel?.();
    const { variable } = request.selection;
    if (this.histogram.peek().variable !== variable) this.histogram.value = { variable };
    this.#cancel = this.#model.client.send<"range">(request, (answer) => {
      const found = answer.kind === "failed" ? { failure: answer } : { found: answer };
      this.histogram.value = { variable, ...found };
    });
  }
}

/** Returns the request of the histogram; undefined while the picture moves. */
function histogramRequest(model: ExploreModel): RequestOf<"range"> | undefined {
  const path = model.resolved.value?.variable.path;
  const resolved = model.resolved.peek();
  if (path === undefined || resolved === undefined) return undefined;
  const common = { kind: "range", percentiles: [0, 100] } as const;
  if (resolved.axes === undefined)
    return { ...common, selection: { variable: path, at: resolved.at }, axes: undefined };
  const request = model.request.value;
  if (request === undefined || request.isMoving) return undefined;
  const { selection, axes, viewport } = request;
  return { ...common, selection, axes, viewport };
}

/** Returns the series that the view asks for; undefined if there is none, or its place is not found yet. */
function placeOf(model: ExploreModel): SeriesPlace | undefined {
  const resolved = model.resolved.value;
  if (resolved === undefined || resolved.variable.problem !== undefined) return undefined;
  const { variable, values } = resolved;
  const fixed = model.probes.fixed.value;
  const at = variable.form === "image" ? fixed?.cell : resolved.at;
  if (at === undefined || at.length !== variable.axes.length) return undefined;
  const along = alongOf(variable, model.view.value.probe?.along, resolved.axes);
  const description = variable.axes[along];
  if (description === undefined) return undefined;
  const { coordinate, length } = description;
  const degrees = fixed && degreesOf(model.plane.value, fixed);
  const onGrid = degrees && { ...degrees, name: fixed.name };
  if (coordinate === variable.path) {
    const axis = indexPlotAxis("index", length);
    return { variable, values: values.with(along, INDEX_AXIS), at, along, axis, onGrid };
  }
  const attrs = coordinate === undefined ? undefined : model.variableAt(coordinate)?.attrs;
  return { variable, values, at, along, axis: createPlotAxis(description, values[along]!, attrs), onGrid };
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

function keyOf({ variable, at, along }: SeriesPlace): string {
  return [variable.path, along, ...at.map((index, axis) => (axis === along ? "" : index))].join(" ");
}

/** A plot, and what its text says. */
export interface ShownPlot {
  readonly variable: VariableDescription;
  /** What it is of: `series of air along time`, `histogram of air`. */
  readonly name: string;
  /** Where a series is; empty if the variable has no other axes. */
  readonly place: string;
  readonly summary: string;
  readonly axis: PlotAxis;
  /** One per position of the axis; null for gaps. */
  readonly values: readonly (number | null)[];
  readonly valueLabel: string;
  /** Writes a value beside its axis; undefined if values are numbers. */
  readonly valueTick?: ((value: number) => string) | undefined;
  readonly isLog: boolean;
  /** Whether values are bars as wide as the distance of positions: a histogram. */
  readonly isBars: boolean;
  /** What is read out of a position. */
  readonly textOf: (index: number) => string;
  readonly csv: () => string;
  readonly onClick: (index: number) => void;
}

/** Returns the plot of a series. Values are in the order of the cells; those that are not read yet may be left out. */
export function seriesShown(
  place: SeriesPlace,
  values: Float64Array,
  isLog: boolean,
  onCell: (cell: number) => void,
): ShownPlot {
  const { variable, along, axis } = place;
  return {
    variable,
    name: `${variable.name} along ${axis.dim}`,
    place: placeText(place),
    summary: seriesSummary(variable, plotValues(axis, values, false)),
    axis,
    values: plotValues(axis, values, isLog),
    valueLabel: labelWithUnits(variable.name, variable.units),
    ...(isTime(variable) && { valueTick: (value) => shortDate(unpackedText(variable, value)) }),
    isLog,
    isBars: false,
    textOf: (index) => {
      const cell = cellOfPosition(axis, index);
      return `${stepText(place.values[along]!, cell, variable.axes[along])}: ${textWithUnits(values[cell], variable)}`;
    },
    csv: () => seriesCsv(place, values),
    onClick: (index) => onCell(cellOfPosition(axis, index)),
  };
}

/** Returns the plot of a histogram. */
export function histogramShown(
  variable: VariableDescription,
  found: RangeAnswer,
  isLog: boolean,
  place: string,
): ShownPlot {
  const { bins, least, greatest, missing } = found;
  const width = (greatest - least) / Math.max(1, bins.length);
  const boundsText = (index: number): string =>
    [0, 1]
      .map((end) =>
        withUnits(
          String(Number((least + width * (index + end)).toPrecision(5))),
          end === 0 ? undefined : variable.units,
        ),
      )
      .join(" to ");
  const positions = Float64Array.from(bins, (_, index) => least + width * (index + 0.5));
  return {
    variable,
    name: `histogram of ${variable.name}`,
    place,
    summary: `${count(found.count)} values${missing === 0 ? "" : `, ${count(missing)} missing`}`,
    axis: { ...indexPlotAxis(labelWithUnits(variable.name, variable.units), bins.length), positions },
    values: bins.map((each) => (isLog && each === 0 ? null : each)),
    valueLabel: "number of values",
    isLog,
    isBars: true,
    textOf: (index) => `${boundsText(index)}: ${count(bins[index] ?? 0)} values`,
    csv: () => histogramCsv(variable, found),
    onClick: () => {},
  };
}
