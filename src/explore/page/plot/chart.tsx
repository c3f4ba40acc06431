import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { watchLook } from "../hooks.js";
import type { PlotZoom } from "./plot-axis.js";
import type { ShownPlot } from "./plot-model.js";
import { type PlotColours, type PlotEvents, plotOptions } from "./plot-options.js";
import "uplot/dist/uPlot.min.css";

interface ChartProps {
  readonly shown: ShownPlot;
  /** Undefined for the whole axis. */
  readonly zoom: PlotZoom | undefined;
  /** Position that is read out; undefined for none. */
  readonly point: number | undefined;
  /** Position that is marked; undefined for none. */
  readonly mark: number | undefined;
  readonly events: PlotEvents;
}

/** A plot on a canvas, drawn by uPlot. */
export function Chart(props: ChartProps) {
  const { shown, zoom, point, mark } = props;
  const { positions } = shown.axis;
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);
  // Listeners outlive the rendering that made them.
  const latest = useRef(props);
  latest.current = props;

  useEffect(() => {
    const element = box.current!;
    const plot = createPlot(element, latest);
    chart.current = plot;
    const resize = (): void => {
      const { clientWidth: width, clientHeight: height } = element;
      if (width > 0 && (width !== plot.width || height !== plot.height)) plot.setSize({ width, height });
    };
    const stopWatching = watchLook(element, resize, () => plot.redraw(false));
    return () => {
      stopWatching();
      plot.destroy();
      chart.current = undefined;
    };
    // uPlot does not change orientation, logarithm or ticks of a plot that there is.
  }, [positions, shown.isLog, shown.isBars, shown.valueLabel, shown.axis.label]);

  useEffect(() => {
    const plot = chart.current;
    if (plot !== undefined && plot.data[1] !== shown.values) plot.setData(dataOf(shown), zoom === undefined);
  }, [shown.values]);

  useEffect(() => chart.current?.redraw(false), [mark]);

  useEffect(() => {
    const { low, high } = zoom ?? wholeOf(shown);
    if (high > low) chart.current?.setScale("x", { min: low, max: high });
  }, [zoom, positions]);

  useEffect(() => {
    if (chart.current !== undefined) showPoint(chart.current, shown, point);
  }, [point, shown]);

  const label = `${shown.name} ${shown.place}: ${shown.summary}`;
  return <div ref={box} class="chart" role="img" aria-label={label} />;
}

function createPlot(element: HTMLElement, latest: { readonly current: ChartProps }): uPlot {
  const { shown } = latest.current;
  const events = (): PlotEvents => latest.current.events;
  const size = { width: element.clientWidth, height: element.clientHeight };
  const mark = () => latest.current.mark;
  const options = plotOptions(shown, size, () => coloursOf(element), mark, events);
  if (shown.isBars && uPlot.paths.bars !== undefined)
    options.series[1]!.paths = uPlot.paths.bars({ size: [1], gap: 1 });
  element.dataset.points = String(shown.values.length);
  return new uPlot(options, dataOf(shown), element);
}

/** Moves uPlot's cursor to the position that is read out. */
function showPoint(plot: uPlot, { axis, values }: ShownPlot, point: number | undefined): void {
  const position = point === undefined ? undefined : axis.positions[point];
  if (point === undefined || position === undefined || plot.cursor.idx === point) return;
  const along = plot.valToPos(position, "x");
  const value = values[point];
  const across = typeof value === "number" ? plot.valToPos(value, "y") : 0;
  plot.setCursor(axis.isVertical ? { left: across, top: along } : { left: along, top: across }, false);
}

/** Returns the ends of the axis: outer bars are shown whole. */
function wholeOf({ axis: { positions }, isBars }: ShownPlot): PlotZoom {
  const [low = 0, second = low + 1] = [positions[0], positions[1]];
  const margin = isBars ? (second - low) / 2 : 0;
  return { low: low - margin, high: (positions[positions.length - 1] ?? 1) + margin };
}

function dataOf({ axis: { positions }, values }: ShownPlot): uPlot.AlignedData {
  return [positions, values as (number | null)[]];
}

function coloursOf(element: Element): PlotColours {
  const style = getComputedStyle(element);
  const named = (name: string): string => style.getPropertyValue(name).trim();
  return {
    line: named("--accent"),
    text: named("--text"),
    grid: named("--line"),
    mark: named("--mark"),
    fill: `${named("--accent")}38`,
  };
}
