import type { ShownRange } from "../../protocol.js";
import { numberTicks } from "../axis-ticks.js";
import type { ExploreModel } from "../model.js";
import { positionInRange, valueInRange } from "./shown-range.js";

/** Values that the colour bar spans: the range, and a margin at both sides. */
export interface BarDomain {
  readonly low: number;
  readonly high: number;
  /** Returns the place of a value: 0 at the left, 1 at the right end of the bar. */
  readonly positionOf: (value: number) => number;
  readonly valueAt: (position: number) => number;
}

/** Part of the bar beside each end of the range. */
const MARGIN = 0.1;
const STRIP = 12;
const LABELS = 16;
const TICK_DISTANCE = 70;

/** Returns what the bar spans for a range; from 0 to 1 as long as there is none. */
export function domainOf(range: ShownRange = { low: 0, high: 1, isLog: false }): BarDomain {
  const scale = 1 - 2 * MARGIN;
  const valueAt = (position: number): number => valueInRange(range, (position - MARGIN) / scale);
  return {
    low: valueAt(0),
    high: valueAt(1),
    positionOf: (value) => MARGIN + scale * positionInRange(range, value),
    valueAt,
  };
}

/**
 * Draws the colour bar: histogram, strip of the scale with an arrow at each end beyond which the picture has cells, ticks, and missing
 * cells if there are any.
 * @param fixed What the bar spans while an end is dragged.
 */
export function drawColourBar(canvas: HTMLCanvasElement, model: ExploreModel, fixed?: BarDomain): void {
  const context = canvas.getContext("2d");
  const range = model.colours.range.peek();
  const { clientWidth: width, clientHeight: height } = canvas;
  if (context === null || range === undefined || width === 0) return;
  const ratio = devicePixelRatio;
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  context.scale(ratio, ratio);
  const style = getComputedStyle(canvas);
  const domain = fixed ?? domainOf(range);
  const table = model.colours.table.peek();
  const colourAt = (value: number): string => {
    const position = Math.max(0, Math.min(1, positionInRange(range, value)));
    const at = Math.round(255 * (Number.isNaN(position) ? 0 : position)) * 3;
    return `rgb(${table[at]},${table[at + 1]},${table[at + 2]})`;
  };
  const top = height - STRIP - LABELS;
  drawHistogram(context, model, domain, width, top, colourAt);
  const [begin, end] = [domain.positionOf(range.low) * width, domain.positionOf(range.high) * width];
  for (let x = Math.floor(begin); x < end; x++) {
    context.fillStyle = colourAt(domain.valueAt((x + 0.5) / width));
    context.fillRect(Math.max(x, begin), top, Math.min(1, end - x) + 0.5, STRIP);
  }
  const { hasBelow, hasAbove } = model.contents.peek();
  const arrows = [
    [hasBelow, begin, -STRIP, range.low],
    [hasAbove, end, STRIP, range.high],
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
  drawLabels(context, model, range, domain, { width, height, begin, end, top, style });
  canvas.dataset.range = `${range.low},${range.high}`;
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

interface BarLayout {
  readonly width: number;
  readonly height: number;
  readonly begin: number;
  readonly end: number;
  readonly top: number;
  readonly style: CSSStyleDeclaration;
}

function drawLabels(
  context: CanvasRenderingContext2D,
  model: ExploreModel,
  range: ShownRange,
  domain: BarDomain,
  { width, height, begin, end, top, style }: BarLayout,
): void {
  const units = model.variable.peek()?.units ?? "";
  context.fillStyle = style.color;
  context.font = `12px ${style.fontFamily}`;
  context.textBaseline = "bottom";
  context.strokeStyle = style.color;
  context.strokeRect(begin - 0.5, top - 0.5, end - begin + 1, STRIP + 1);
  const texts = tickTexts(range, Math.max(2, Math.floor((end - begin) / TICK_DISTANCE)));
  let free = 0;
  texts.forEach(({ value, label }, index) => {
    const isLast = index === texts.length - 1;
    const text = isLast && units !== "" ? `${label} ${units}` : label;
    const x = domain.positionOf(value) * width;
    const own = context.measureText(label).width;
    const wide = context.measureText(text).width;
    const left = Math.max(0, Math.min(x - own / 2, width - wide));
    context.fillRect(Math.round(x), top + STRIP, 1, 3);
    if (left < free) return;
    context.fillText(text, left, height);
    free = left + wide + 8;
  });
}

function tickTexts(range: ShownRange, count: number): { readonly value: number; readonly label: string }[] {
  if (!range.isLog) return numberTicks(range.low, range.high, count);
  const [first, last] = [Math.ceil(Math.log10(range.low) - 1e-9), Math.floor(Math.log10(range.high) + 1e-9)];
  const step = Math.max(1, Math.ceil((last - first + 1) / count));
  const powers = Array.from(
    { length: Math.floor((last - first) / step) + 1 },
    (_, index) => 10 ** (first + index * step),
  );
  const values = powers.length > 1 ? powers : [range.low, Math.sqrt(range.low * range.high), range.high];
  return values.map((value) => ({ value, label: String(Number(value.toPrecision(3))) }));
}
