import { useState } from "preact/hooks";
import { unitText, withUnits } from "../../../cf/unit-text.js";
import { ABOVE, BELOW, type ShownRange } from "../../protocol.js";
import { fittingTicks, numberTicks, powerTicks, type Tick } from "../axis-ticks.js";
import { DrawnCanvas } from "../controls.js";
import { useValue } from "../hooks.js";
import { cssColour } from "../map/frame-painter.js";
import type { ExploreModel } from "../model.js";
import { Legend } from "./category-legend.js";
import { positionInRange, roundToRange, valueInRange } from "./colour-model.js";

const MARGIN = 0.1;
const STRIP = 12;
const LABELS = 16;
const TICK_DISTANCE = 70;

type BarDomain = ReturnType<typeof domainOf>;

/** Returns the values that the bar spans: the range, and a margin at both sides. Its positions run from 0 at the left to 1 at the right. */
function domainOf(range: ShownRange) {
  const scale = 1 - 2 * MARGIN;
  const valueAt = (position: number): number => valueInRange(range, (position - MARGIN) / scale);
  return {
    low: valueAt(0),
    high: valueAt(1),
    positionOf: (value: number) => MARGIN + scale * positionInRange(range, value),
    valueAt,
  };
}

/** Draws the colour bar: histogram, strip of the scale, arrows if the picture has cells beyond its ends, and ticks. */
function drawColourBar(context: CanvasRenderingContext2D, model: ExploreModel, fixed?: BarDomain): void {
  const range = model.colours.range.peek();
  if (range === undefined) return;
  const { clientWidth: width, clientHeight: height, dataset } = context.canvas;
  const text = context.fillStyle as string;
  const domain = fixed ?? domainOf(range);
  const table = model.colours.table.peek();
  const colourAt = (value: number): string => {
    const position = Math.max(0, Math.min(1, positionInRange(range, value)));
    return cssColour(table, Math.round(255 * (Number.isNaN(position) ? 0 : position)));
  };
  const top = height - STRIP - LABELS;
  drawHistogram(context, model, domain, width, top, colourAt);
  const [begin, end] = [domain.positionOf(range.low) * width, domain.positionOf(range.high) * width];
  for (let x = Math.floor(begin); x < end; x++) {
    context.fillStyle = colourAt(domain.valueAt((x + 0.5) / width));
    context.fillRect(Math.max(x, begin), top, Math.min(1, end - x) + 0.5, STRIP);
  }
  const contents = model.contents.peek();
  const arrows = [
    [contents.has(BELOW), begin, -STRIP, range.low],
    [contents.has(ABOVE), end, STRIP, range.high],
  ] as const;
  for (const [isThere, x, length, value] of arrows) {
    if (!isThere) continue;
    context.fillStyle = colourAt(value);
    context.beginPath();
    context.moveTo(x, top);
    context.lineTo(x + length, top + STRIP / 2);
    context.lineTo(x, top + STRIP);
    context.fill();
  }
  [context.fillStyle, context.strokeStyle] = [text, text];
  drawLabels(context, range, domain, top);
  dataset.range = `${range.low},${range.high}`;
}

function drawHistogram(
  context: CanvasRenderingContext2D,
  model: ExploreModel,
  domain: BarDomain,
  width: number,
  height: number,
  colourAt: (value: number) => string,
): void {
  const found = model.colours.found.peek();
  if (found === undefined || found.bins.length === 0) return;
  const { least, greatest, bins } = found;
  const step = (greatest - least) / bins.length;
  const most = Math.max(...bins);
  bins.forEach((count, index) => {
    if (count === 0) return;
    const value = least + step * index;
    const left = Math.max(0, domain.positionOf(value) * width);
    const right = Math.min(width, domain.positionOf(value + step) * width);
    // The square root lets rare values be seen beside frequent ones.
    const high = Math.max(1, Math.sqrt(count / most) * (height - 2));
    context.fillStyle = colourAt(value + step / 2);
    if (right > left) context.fillRect(left, height - high - 1, right - left + 0.6, high);
  });
}

function drawLabels(
  context: CanvasRenderingContext2D,
  range: ShownRange,
  domain: BarDomain,
  top: number,
): void {
  const { clientWidth: width, clientHeight: height } = context.canvas;
  const [begin, end] = [domain.positionOf(range.low) * width, domain.positionOf(range.high) * width];
  context.textBaseline = "bottom";
  context.strokeRect(begin - 0.5, top - 0.5, end - begin + 1, STRIP + 1);
  const widthOf = ({ label }: Tick): number => context.measureText(label).width;
  const spanOf = (tick: Tick): [number, number] => {
    const wide = widthOf(tick);
    const left = Math.max(0, Math.min(domain.positionOf(tick.value) * width - wide / 2, width - wide));
    return [left, left + wide];
  };
  const most = Math.max(2, Math.floor((end - begin) / TICK_DISTANCE));
  const ticksOf = range.isLog ? powerTicks : numberTicks;
  for (const tick of fittingTicks(most, (count) => ticksOf(range.low, range.high, count), spanOf)) {
    context.fillRect(Math.round(domain.positionOf(tick.value) * width), top + STRIP, 1, 3);
    context.fillText(tick.label, spanOf(tick)[0], height);
  }
}

/** Part of the range by which a key moves an end. */
const KEY_STEPS: Readonly<Record<string, number>> = {
  ArrowLeft: -0.01,
  ArrowDown: -0.01,
  ArrowRight: 0.01,
  ArrowUp: 0.01,
  PageDown: -0.1,
  PageUp: 0.1,
};

/** The colour bar: the histogram of the values in their colours, with a handle at each end of the range. */
export function ColourBar({ model }: { readonly model: ExploreModel }) {
  const { colours, contents } = model;
  const range = useValue(colours.range);
  const inputs = [range, useValue(colours.table), useValue(colours.found), useValue(contents)];
  // What the bar spans while an end is dragged. Once that is dropped, the bar shows the new range from end to end.
  const [dragged, setDragged] = useState<BarDomain | undefined>();
  const units = useValue(model.variable)?.units;
  return (
    <div class="bar">
      <div class="bar-scale">
        <DrawnCanvas
          inputs={[...inputs, dragged]}
          draw={(context) => drawColourBar(context, model, dragged)}
          role="img"
          aria-label={`Colour bar${range === undefined ? "" : ` from ${range.low} to ${withUnits(String(range.high), units)}`}`}
        />
        {range !== undefined &&
          (["low", "high"] as const).map((end) => (
            <RangeHandle key={end} {...{ model, end, range, units, dragged, setDragged }} />
          ))}
      </div>
      <Legend model={model} text={units === undefined ? undefined : unitText(units)} />
    </div>
  );
}

/** An end of the range that is moved by the pointer or by keys. */
function RangeHandle(props: {
  readonly model: ExploreModel;
  readonly end: "low" | "high";
  readonly range: ShownRange;
  readonly units: string | undefined;
  readonly dragged: BarDomain | undefined;
  readonly setDragged: (domain: BarDomain | undefined) => void;
}) {
  const { model, end, range, units, dragged, setDragged } = props;
  const domain = dragged ?? domainOf(range);
  const setEnd = (value: number): void => {
    const now = model.colours.range.peek();
    if (now === undefined) return;
    const rounded = roundToRange(value, now);
    if (end === "low" ? rounded >= now.high : rounded <= now.low) return;
    model.colours.setRange(end === "low" ? rounded : now.low, end === "high" ? rounded : now.high);
  };
  return (
    <div
      class={`handle ${end}`}
      role="slider"
      tabIndex={0}
      aria-label={end === "low" ? "Lower end of the colour range" : "Upper end of the colour range"}
      aria-valuemin={end === "low" ? domain.low : range.low}
      aria-valuemax={end === "low" ? range.high : domain.high}
      aria-valuenow={range[end]}
      aria-valuetext={withUnits(String(roundToRange(range[end], range)), units)}
      style={{ left: `${domain.positionOf(range[end]) * 100}%` }}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDragged(domainOf(range));
      }}
      onPointerMove={(event) => {
        const parent = event.currentTarget.parentElement;
        if (dragged === undefined || parent === null) return;
        const { left, width } = parent.getBoundingClientRect();
        setEnd(dragged.valueAt((event.clientX - left) / width));
      }}
      onLostPointerCapture={() => setDragged(undefined)}
      onKeyDown={(event) => {
        const step = KEY_STEPS[event.key];
        if (step === undefined) return;
        event.preventDefault();
        setEnd(valueInRange(range, positionInRange(range, range[end]) + step));
      }}
    />
  );
}
