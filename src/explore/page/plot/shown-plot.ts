import { format } from "d3-format";
import type { Calendar } from "../../../cf/cf-time.js";
import type { AxisValues, VariableDescription } from "../../dataset-description.js";
import type { RangeAnswer } from "../../protocol.js";
import { unpackedText } from "../../value-text.js";
import { shortDate, stepText } from "../axis-cells.js";
import { cellAt, plotValues, type SeriesPlace } from "./plot-axis.js";
import { isTime, placeText, seriesSummary, valueText } from "./plot-text.js";
import { histogramCsv, seriesCsv } from "./save-csv.js";

const count = format(",");

/** What a plot shows. */
export interface PlotContent {
  /** Ascending. */
  readonly positions: ArrayLike<number>;
  /** One per position; null for gaps. */
  readonly values: readonly (number | null)[];
  readonly positionLabel: string;
  readonly valueLabel: string;
  /** Writes a value beside its axis; undefined if values are numbers. */
  readonly valueTick: ((value: number) => string) | undefined;
  /** Set if positions are days of a calendar. */
  readonly calendar: Calendar | undefined;
  /** Names at positions 0, 1, …; undefined if positions are numbers. */
  readonly names: readonly string[] | undefined;
  /** Whether positions run upwards, or downwards, instead of to the right. */
  readonly isVertical: boolean;
  readonly isDownward: boolean;
  readonly isLog: boolean;
  /** Whether values are bars as wide as the distance of positions: a histogram. */
  readonly isBars: boolean;
}

/** A plot, and what its text says. */
export interface ShownPlot {
  readonly content: PlotContent;
  readonly variable: VariableDescription;
  /** What it is of: `series of air along time`, `histogram of air`. */
  readonly name: string;
  /** Where a series is; empty if the variable has no other axes. */
  readonly place: string;
  readonly summary: string;
  /** What is read out of a position. */
  readonly textOf: (index: number) => string;
  readonly csv: () => string;
  readonly onClick: (index: number) => void;
}

/**
 * Returns the plot of a series.
 * @param values In the order of the cells; those that are not read yet may be left out.
 * @param onCell Called if a cell of the series is clicked.
 */
export function seriesShown(
  place: SeriesPlace,
  values: Float64Array,
  isLog: boolean,
  onCell: (cell: number) => void,
): ShownPlot {
  const { variable, along, axis } = place;
  const own = place.values[along] as AxisValues;
  const plotted = plotValues(axis, values, isLog);
  return {
    variable,
    name: `${variable.name} along ${axis.dim}`,
    place: placeText(place),
    content: {
      positions: axis.positions,
      values: plotted,
      positionLabel: axis.label,
      valueLabel: labelOf(variable),
      valueTick: isTime(variable) ? (value) => shortDate(unpackedText(variable, value)) : undefined,
      calendar: axis.calendar,
      names: axis.names,
      isVertical: axis.isVertical,
      isDownward: axis.isDownward,
      isLog,
      isBars: false,
    },
    summary: seriesSummary(variable, plotValues(axis, values, false)),
    textOf: (index) => {
      const cell = cellAt(axis, index);
      return `${stepText(own, cell)}: ${valueText(values[cell], variable)}`;
    },
    csv: () => seriesCsv(place, values),
    onClick: (index) => onCell(cellAt(axis, index)),
  };
}

/**
 * Returns the plot of a histogram.
 * @param place What it is of, in words; empty for the whole variable.
 */
export function histogramShown(
  variable: VariableDescription,
  found: RangeAnswer,
  isLog: boolean,
  place: string,
): ShownPlot {
  const { bins, least, greatest, missing } = found;
  const width = (greatest - least) / Math.max(1, bins.length);
  const boundsOf = (index: number) =>
    [least + width * index, least + width * (index + 1)].map((bound) => Number(bound.toPrecision(5)));
  const units = variable.units === undefined ? "" : ` ${variable.units}`;
  const missingText = missing === 0 ? "" : `, ${count(missing)} missing`;
  return {
    variable,
    name: `histogram of ${variable.name}`,
    place,
    content: {
      positions: Float64Array.from(bins, (_, index) => least + width * (index + 0.5)),
      values: bins.map((each) => (isLog && each === 0 ? null : each)),
      positionLabel: labelOf(variable),
      valueLabel: "values",
      valueTick: undefined,
      calendar: undefined,
      names: undefined,
      isVertical: false,
      isDownward: false,
      isLog,
      isBars: true,
    },
    summary: `${count(found.count)} values${missingText}`,
    textOf: (index) => `${boundsOf(index).join(" to ")}${units}: ${count(bins[index] ?? 0)} values`,
    csv: () => histogramCsv(variable, found),
    onClick: () => {},
  };
}

function labelOf({ name, units }: VariableDescription): string {
  return units === undefined ? name : `${name} [${units}]`;
}
