import type uPlot from "uplot";
import { dateTicks, fittingTicks, numberTicks, shortNumber, type Tick, textTicks } from "../axis-ticks.js";
import type { PlotAxis } from "./plot-axis.js";
import type { ShownPlot } from "./plot-model.js";

/** Colours of a plot: CSS colours. */
export type PlotColours = Readonly<Record<"line" | "text" | "grid" | "mark" | "fill", string>>;

/** What a plot tells: the position under the pointer or none, a position that is clicked, a part of the axis that is dragged over. */
export interface PlotEvents {
  readonly onPoint: (index: number | undefined) => void;
  readonly onClick: (index: number) => void;
  readonly onSelect: (low: number, high: number) => void;
}

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const TICK_DISTANCE = { horizontal: 90, vertical: 34 };
const LINE = 14;

/** Returns uPlot's options of a plot. Colours, and the mark of the step that is shown, are asked for at each drawing. */
export function plotOptions(
  { axis, isLog, isBars, valueLabel, valueTick }: ShownPlot,
  size: { readonly width: number; readonly height: number },
  colours: () => PlotColours,
  mark: () => number | undefined,
  events: () => PlotEvents,
): uPlot.Options {
  const { isVertical, isDownward } = axis;
  return {
    ...size,
    scales: {
      x: { time: false, ori: isVertical ? 1 : 0, dir: isDownward ? -1 : 1 },
      y: { ori: isVertical ? 0 : 1, distr: isLog ? 3 : 1 },
    },
    axes: axesOf({ axis, isLog, valueLabel, valueTick }, colours),
    series: [
      {},
      {
        stroke: () => colours().line,
        fill: isBars ? () => colours().fill : undefined,
        width: isBars ? 1 : 1.5,
        points: isBars ? { show: false } : { size: 5, fill: () => colours().line, filter: lonePoints },
      } as uPlot.Series,
    ],
    legend: { show: false },
    cursor: { drag: { x: true, y: false, setScale: false, dist: 5 }, points: { size: 8 } },
    hooks: {
      setCursor: [(plot) => events().onPoint(plot.cursor.idx ?? undefined)],
      setSelect: [(plot) => selectPart(plot, isVertical, events())],
      draw: [(plot) => drawMark(plot, mark(), isVertical, colours().mark)],
      ready: [
        (plot) => {
          plot.over.addEventListener("click", () => {
            const { idx } = plot.cursor;
            if (typeof idx === "number") events().onClick(idx);
          });
        },
      ],
    },
  };
}

/** Returns the axes of positions and of values. */
function axesOf(
  { axis, isLog, valueLabel, valueTick }: Pick<ShownPlot, "axis" | "isLog" | "valueLabel" | "valueTick">,
  colours: () => PlotColours,
): uPlot.Axis[] {
  const { isVertical, calendar } = axis;
  const [positionSide, valueSide] = isVertical ? [3, 2] : [2, 3];
  const common = (side: number): uPlot.Axis => ({
    side,
    font: FONT,
    labelFont: FONT,
    stroke: () => colours().text,
    grid: { stroke: () => colours().grid, width: 1 },
    ticks: { stroke: () => colours().grid, width: 1, size: 5 },
    labelSize: 18,
    labelGap: 2,
    space: side === 3 ? TICK_DISTANCE.vertical : TICK_DISTANCE.horizontal,
    size: side === 3 ? sideWidth : calendar === undefined ? 30 : 42,
  });
  // Dates say what they are.
  const label = calendar === undefined ? { label: axis.label } : {};
  const write = isLog ? shortNumber : valueTick;
  const values = write && {
    values: (_plot: uPlot, splits: (number | null)[]) =>
      splits.map((value) => (value === null ? "" : write(value))),
  };
  return [
    { ...common(positionSide), scale: "x", ...label, ...ticksOf(axis, isVertical) },
    { ...common(valueSide), scale: "y", label: valueLabel, ...(values ?? ticksOf(NUMBERS, !isVertical)) },
  ];
}

/** Returns the values between gaps on both sides, which no line shows, if points are too dense to be drawn. */
function lonePoints(plot: uPlot, series: number, areShown: boolean): number[] | null {
  const values = plot.data[series] as (number | null)[];
  if (areShown) return null;
  const isGap = (index: number): boolean => values[index] === null || values[index] === undefined;
  const lone = Array.from(values.keys()).filter(
    (index) => !isGap(index) && isGap(index - 1) && isGap(index + 1),
  );
  return lone.length > 0 ? lone : null;
}

const NUMBERS = { calendar: undefined, names: undefined };

/** Returns ticks at round dates, names or numbers, as many as there is room for. */
function ticksOf(
  { calendar, names }: Pick<PlotAxis, "calendar" | "names">,
  isUpright: boolean,
): Partial<uPlot.Axis> {
  const distance = isUpright ? TICK_DISTANCE.vertical : TICK_DISTANCE.horizontal;
  const labelOf = ({ label }: Tick): string => (isUpright ? label.replace("\n", " ") : label);
  let shown: readonly Tick[] = [];
  return {
    splits: (plot, _axis, low, high) => {
      const length = (isUpright ? plot.bbox.height : plot.bbox.width) / devicePixelRatio;
      const make = (count: number): Tick[] => {
        if (calendar !== undefined) return dateTicks(calendar, low, high, count);
        if (names === undefined) return numberTicks(low, high, count);
        return textTicks(
          names,
          Math.max(0, Math.ceil(low)),
          Math.min(names.length - 1, Math.floor(high)),
          count,
        );
      };
      shown = fittingTicks(Math.max(2, Math.floor(length / distance)), make, (tick) => {
        const middle = ((tick.value - low) / (high - low)) * length;
        const half = isUpright ? LINE / 2 : widthOf(plot, labelOf(tick).split("\n")) / 2;
        return [middle - half, middle + half];
      });
      return shown.map(({ value }) => value);
    },
    values: () => shown.map(labelOf),
  };
}

/** Returns the width of the labels at the side of a plot. */
function sideWidth(plot: uPlot, values: string[] | null): number {
  return Math.ceil(Math.max(20, widthOf(plot, values ?? []))) + 14;
}

/** Returns the width of the longest text. */
function widthOf({ ctx }: uPlot, texts: readonly string[]): number {
  ctx.save();
  ctx.font = FONT;
  const widths = texts.map((text) => ctx.measureText(text).width);
  ctx.restore();
  return Math.max(0, ...widths);
}

function selectPart(plot: uPlot, isVertical: boolean, { onSelect }: PlotEvents): void {
  const { left, top, width, height } = plot.select;
  const [begin, length] = isVertical ? [top, height] : [left, width];
  if (length <= 0) return;
  const ends = [plot.posToVal(begin, "x"), plot.posToVal(begin + length, "x")];
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  onSelect(Math.min(...ends), Math.max(...ends));
}

function drawMark(plot: uPlot, mark: number | undefined, isVertical: boolean, colour: string): void {
  const { min, max } = plot.scales.x ?? {};
  if (mark === undefined || min === undefined || max === undefined || mark < min || mark > max) return;
  const place = Math.round(plot.valToPos(mark, "x", true));
  const { left, top, width, height } = plot.bbox;
  plot.ctx.save();
  plot.ctx.fillStyle = colour;
  const thick = Math.max(1, Math.round(devicePixelRatio));
  if (isVertical) plot.ctx.fillRect(left, place, width, thick);
  else plot.ctx.fillRect(place, top, thick, height);
  plot.ctx.restore();
}
