import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { watchLook } from "../hooks.js";
import type { PlotZoom } from "./plot-axis.js";
import type { PlotContent } from "./plot-model.js";
import { type PlotColours, type PlotEvents, plotOptions } from "./plot-options.js";
import "uplot/dist/uPlot.min.css";

interface ChartProps {
  readonly content: PlotContent;
  /** Undefined for the whole axis. */
  readonly zoom: PlotZoom | undefined;
  /** Position that is read out; undefined for none. */
  readonly point: number | undefined;
  /** Position that is marked; undefined for none. */
  readonly mark: number | undefined;
  readonly label: string;
  readonly events: PlotEvents;
}

/** A plot on a canvas, drawn by uPlot. */
export function Chart(props: ChartProps) {
  const { content, zoom, point, mark, label } = props;
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
  }, [content.positions, content.isLog, content.isBars, content.valueLabel, content.positionLabel]);

  useEffect(() => {
    const plot = chart.current;
    if (plot !== undefined && plot.data[1] !== content.values)
      plot.setData(dataOf(content), zoom === undefined);
  }, [content.values]);

  useEffect(() => chart.current?.redraw(false), [mark]);

  useEffect(() => {
    const { low, high } = zoom ?? wholeOf(content);
    if (high > low) chart.current?.setScale("x", { min: low, max: high });
  }, [zoom, content.positions]);

  useEffect(() => {
    if (chart.current !== undefined) showPoint(chart.current, content, point);
  }, [point, content]);

  return <div ref={box} class="chart" role="img" aria-label={label} />;
}

function createPlot(element: HTMLElement, latest: { readonly current: ChartProps }): uPlot {
  const { content } = latest.current;
  const events: PlotEvents = {
    onPoint: (index) => latest.current.events.onPoint(index),
    onClick: (index) => latest.current.events.onClick(index),
    onSelect: (low, high) => latest.current.events.onSelect(low, high),
  };
  const size = { width: element.clientWidth, height: element.clientHeight };
  const mark = () => latest.current.mark;
  const options = plotOptions(content, size, () => coloursOf(element), mark, events);
  if (content.isBars && uPlot.paths.bars !== undefined)
    options.series[1]!.paths = uPlot.paths.bars({ size: [1], gap: 1 });
  element.dataset.points = String(content.values.length);
  return new uPlot(options, dataOf(content), element);
}

/** Moves uPlot's cursor to the position that is read out. */
function showPoint(plot: uPlot, content: PlotContent, point: number | undefined): void {
  const position = point === undefined ? undefined : content.positions[point];
  if (point === undefined || position === undefined || plot.cursor.idx === point) return;
  const along = plot.valToPos(position, "x");
  const value = content.values[point];
  const across = typeof value === "number" ? plot.valToPos(value, "y") : 0;
  plot.setCursor(content.isVertical ? { left: across, top: along } : { left: along, top: across }, false);
}

/** Returns the ends of the axis: outer bars are shown whole. */
function wholeOf({ positions, isBars }: PlotContent): PlotZoom {
  const [low = 0, second = low + 1] = [positions[0], positions[1]];
  const margin = isBars ? (second - low) / 2 : 0;
  return { low: low - margin, high: (positions[positions.length - 1] ?? 1) + margin };
}

function dataOf({ positions, values }: PlotContent): uPlot.AlignedData {
  return [positions as Float64Array, values as (number | null)[]];
}

function coloursOf(element: Element): PlotColours {
  const style = getComputedStyle(element);
  const named = (name: string): string => style.getPropertyValue(name).trim();
  return {
    line: named("--accent"),
    text: named("--text"),
    grid: named("--plot-grid"),
    mark: named("--mark"),
    fill: named("--plot-fill"),
  };
}
