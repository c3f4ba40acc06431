import { untracked } from "@preact/signals-core";
import type { Place } from "../../../cf/projection.js";
import { labelWithUnits } from "../../../cf/unit-text.js";
import { type Box, INDEX_AXIS, type ProbeAnswer } from "../../protocol.js";
import {
  axisTicks,
  axisUnitOf,
  cellEdges,
  degreeTicks,
  fittingTicks,
  type Tick,
  tickCount,
} from "../axis-ticks.js";
import { clearedContext } from "../hooks.js";
import type { ExploreModel } from "../model.js";
import type { ResolvedView } from "../page-state.js";
import { type Coasts, linesInBox, type PlaneLine } from "./coastline.js";
import { graticuleOf } from "./graticule.js";
import { projectedCoast } from "./map-projection.js";
import { ascending, isMap as isMapPlane, pointOf, type Size } from "./plane-box.js";

type Margins = Readonly<Record<"left" | "right" | "top" | "bottom", number>>;

const NARROW = 600;

const TITLE = 18;
const LINE = 14;
const PIXELS_PER_LETTER = 7;
/** Numbers and dates are no longer than this, and never cut. */
const MOST_NUMBER = 130;

/** Returns the pixels that are needed beside those of numbers: for titles, which axes of a map do without, and for names of rows. */
export function titleRoomOf(model: ExploreModel): number {
  const { axes, values } = model.resolved.value ?? {};
  if (isMapPlane(model.plane.value)) return 0;
  const { texts = [], calendar } = values?.[axes?.y ?? 0] ?? {};
  if (calendar !== undefined || model.camera.inCells.value) return TITLE;
  return TITLE + texts.reduce((most, { length }) => Math.max(most, (length - 6) * PIXELS_PER_LETTER), 0);
}

/** Returns the margins of a picture that is as wide as this, with {@link titleRoomOf}. */
export function marginsOf(width: number, titleRoom: number): Margins {
  const [left, below] = [Math.min(titleRoom, width / 4), Math.min(titleRoom, TITLE)];
  if (width < NARROW) return { left: 44 + left, right: 6, top: 6, bottom: 20 + below };
  return { left: 60 + left, right: 12, top: 8, bottom: 24 + below };
}

interface Drawing {
  readonly context: CanvasRenderingContext2D;
  readonly style: CSSStyleDeclaration;
  readonly model: ExploreModel;
  readonly resolved: ResolvedView;
  readonly box: Box;
  readonly size: Size;
  readonly margins: Margins;
}

/** Draws what lies above the cells: graticule with labels, coast, the cells under the pointer and of the plot. */
export function drawOverlay(canvas: HTMLCanvasElement, model: ExploreModel, coasts: Coasts): void {
  const context = clearedContext(canvas);
  const [resolved, box, size] = [model.resolved.peek(), model.camera.box.peek(), model.camera.canvas.peek()];
  if (context === undefined || resolved?.axes === undefined || box === undefined) return;
  const plane = model.plane.peek();
  const isMap = isMapPlane(plane);
  const titleRoom = untracked(() => titleRoomOf(model));
  const margins = marginsOf(canvas.clientWidth, titleRoom);
  const drawing: Drawing = { context, style: getComputedStyle(canvas), model, resolved, box, size, margins };
  drawGraticule(drawing);
  if (!isMap) drawTitles(drawing);
  context.save();
  context.beginPath();
  context.rect(margins.left, margins.top, size.width, size.height);
  context.clip();
  context.translate(margins.left, margins.top);
  const graticule = plane?.projection && graticuleOf(plane.projection, box, size);
  if (graticule !== undefined) strokeLines(drawing, graticule.lines, [[1, "--graticule"]]);
  if (isMap && model.hasCoast.peek()) drawCoast(drawing, coasts);
  context.textAlign = "center";
  for (const { label, place } of graticule?.inside ?? [])
    writeUpon(drawing, label, pointOf(box, size, place), "--coast", "--coast-halo");
  context.textAlign = "left";
  const { pointer, fixed, hasCrossHair } = model.probes;
  drawCell(drawing, fixed.peek(), true);
  drawCell(drawing, pointer.peek(), hasCrossHair.peek());
  context.restore();
  context.strokeStyle = drawing.style.getPropertyValue("--muted");
  context.lineWidth = 1;
  context.strokeRect(margins.left - 0.5, margins.top - 0.5, size.width + 1, size.height + 1);
}

function drawCoast(drawing: Drawing, { fine, coarse }: Coasts): void {
  const { box, model } = drawing;
  const [plane, coast] = [model.plane.peek(), fine ?? coarse ?? []];
  const lines =
    plane?.projection === undefined
      ? linesInBox(coast, box)
      : projectedCoast(plane.projection, plane, coast, box);
  drawing.context.lineJoin = "round";
  // A pale line below a dark one is seen on every colour.
  strokeLines(drawing, lines, [
    [2.2, "--coast-halo"],
    [1, "--coast"],
  ]);
}

/** Draws lines of the plane, each with the widths and colours in their order. */
function strokeLines(drawing: Drawing, lines: readonly PlaneLine[], strokes: Strokes): void {
  const { box, size } = drawing;
  const [perX, perY] = [size.width / (box.right - box.left), size.height / (box.bottom - box.top)];
  const path = new Path2D();
  for (const { points, shift = 0 } of lines) {
    for (let index = 0; index < points.length; index += 2) {
      const x = (points[index]! + shift - box.left) * perX;
      const y = (points[index + 1]! - box.top) * perY;
      if (index === 0) path.moveTo(x, y);
      else path.lineTo(x, y);
    }
  }
  strokePath(drawing, path, strokes);
}

type Strokes = readonly (readonly [width: number, property: string])[];

/** Draws a path once for each width and colour, in their order. */
function strokePath({ context, style }: Drawing, path: Path2D, strokes: Strokes): void {
  for (const [width, property] of strokes) {
    context.lineWidth = width;
    context.strokeStyle = style.getPropertyValue(property);
    context.stroke(path);
  }
}

/** Writes a text with a halo, since it lies upon something else. */
function writeUpon({ context, style }: Drawing, text: string, { x, y }: Place, colour: string, halo: string) {
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = style.getPropertyValue(halo);
  context.strokeText(text, x, y);
  context.fillStyle = style.getPropertyValue(colour);
  context.fillText(text, x, y);
}

function drawGraticule(drawing: Drawing): void {
  const { context, style, box, size, margins } = drawing;
  const plane = drawing.model.plane.peek();
  // Lines of a projection are drawn by themselves: here are their labels.
  const isMap = plane?.aspect === "degrees";
  const [xTicks, yTicks] = ticksOf(drawing);
  const path = new Path2D();
  context.fillStyle = style.getPropertyValue("--muted");
  context.textBaseline = "top";
  const bottom = margins.top + size.height;
  for (const tick of xTicks) {
    const x = margins.left + pointOf(box, size, { x: tick.value, y: box.top }).x;
    addLine(path, x, isMap ? margins.top : bottom, x, bottom + 4);
    context.fillText(tick.label, columnSpan(drawing, tick)[0], bottom + 6);
  }
  context.textBaseline = "middle";
  for (const tick of yTicks) {
    const y = margins.top + pointOf(box, size, { x: box.left, y: tick.value }).y;
    addLine(path, margins.left - 4, y, isMap ? margins.left + size.width : margins.left, y);
    const [top, below] = rowSpan(drawing, tick);
    const least = isMap ? 2 : TITLE;
    const left = Math.max(least, margins.left - 6 - context.measureText(tick.label).width);
    // A label that is wider than the margin covers some cells.
    writeUpon(drawing, tick.label, { x: left, y: (top + below) / 2 }, "--muted", "--bg");
  }
  strokePath(drawing, path, [[1, isMap ? "--graticule" : "--muted"]]);
}

/** Returns the left and right end of a label below the picture. */
function columnSpan({ context, box, size, margins }: Drawing, { value, label }: Tick): [number, number] {
  const x = margins.left + pointOf(box, size, { x: value, y: box.top }).x;
  const { width } = context.measureText(label);
  const left = Math.max(0, Math.min(x - width / 2, margins.left + size.width + margins.right - width));
  return [left, left + width];
}

/** Returns the upper and lower end of a label beside the picture, which stays above those below it. */
function rowSpan({ box, size, margins }: Drawing, { value }: Tick): [number, number] {
  const y = margins.top + pointOf(box, size, { x: box.left, y: value }).y;
  const middle = Math.max(LINE / 2, Math.min(y, margins.top + size.height - 2));
  return [middle - LINE / 2, middle + LINE / 2];
}

/** Writes the names of both axes, with their units. */
function drawTitles({ context, style, model, resolved, size, margins }: Drawing): void {
  const { axes, variable, values } = resolved;
  if (axes === undefined) return;
  const titleOf = (index: number): string => {
    const { isLatitude, isLongitude, dim } = variable.axes[index]!;
    // Degrees and dates say what they are.
    const isClear = isLatitude || isLongitude || values[index]!.calendar !== undefined;
    const hasUnits = !isClear && !model.camera.inCells.peek();
    return labelWithUnits(dim, hasUnits ? axisUnitOf(values[index]!).units : undefined);
  };
  context.fillStyle = style.getPropertyValue("--text");
  context.textAlign = "center";
  context.textBaseline = "bottom";
  context.fillText(
    titleOf(axes.x),
    margins.left + size.width / 2,
    margins.top + size.height + margins.bottom,
  );
  context.save();
  context.translate(2, margins.top + size.height / 2);
  context.rotate(-Math.PI / 2);
  context.textBaseline = "top";
  context.fillText(titleOf(axes.y), 0, 0);
  context.restore();
  context.textAlign = "left";
}

/** Returns the ticks of both axes that have room: of degrees if the picture is a map. */
function ticksOf(drawing: Drawing): [columns: readonly Tick[], rows: readonly Tick[]] {
  const { model, resolved, box, size } = drawing;
  const { axes, variable, values } = resolved;
  if (axes === undefined) return [[], []];
  const [columns, rows] = [tickCount(size.width), tickCount(size.height)];
  const { left, right, bottom, top } = ascending(box);
  const { projection, aspect } = model.plane.peek() ?? {};
  const graticule = projection && graticuleOf(projection, box, size);
  const make = (side: "x" | "y", low: number, high: number, count: number): readonly Tick[] => {
    if (graticule !== undefined) return side === "x" ? graticule.below : graticule.beside;
    if (aspect === "degrees") return degreeTicks(low, high, count, side === "x" ? "longitude" : "latitude");
    const index = axes[side];
    const shown = model.camera.inCells.peek() ? INDEX_AXIS : values[index]!;
    return axisTicks(variable.axes[index]!, shown, low, high, count);
  };
  const short = (ticks: readonly Tick[]) =>
    ticks.map((tick) => ({ ...tick, label: shortened(drawing, tick.label) }));
  return [
    fittingTicks(
      columns,
      (count) => make("x", left, right, count),
      (tick) => columnSpan(drawing, tick),
    ),
    fittingTicks(
      rows + 1,
      (count) => short(make("y", bottom, top, count)),
      (tick) => rowSpan(drawing, tick),
    ),
  ];
}

/** Cuts a name for which the margin has no room. */
function shortened({ context, margins }: Drawing, label: string): string {
  const room = Math.max(margins.left - TITLE, MOST_NUMBER);
  let short = label;
  while (short.length > 4 && context.measureText(short).width > room) short = `${short.slice(0, -2)}…`;
  return short;
}

/** Radius of the circle round the dot that is pointed at, larger than any dot. */
const DOT_MARK = 9;

/** Outlines a cell; one whose edges are not known is marked by its centre. */
function drawCell(drawing: Drawing, answer: ProbeAnswer | undefined, isMarked: boolean): void {
  const { model, resolved, box, size } = drawing;
  const { axes, places } = resolved;
  const { isCurved = false, hasDots = false, x: { wraps = false } = {} } = model.plane.peek() ?? {};
  if (axes === undefined || answer?.cell === undefined) return;
  const edgesOf = (index: number) => cellEdges(places[index]!, answer.cell![index]!);
  const [[left, right], [bottom, top]] = [edgesOf(axes.x), edgesOf(axes.y)];
  // On a globe, the cell is shown where the box is.
  const turn = wraps || isCurved ? 360 * Math.round(((box.left + box.right) / 2 - answer.x) / 360) : 0;
  const centre = { x: answer.x + turn, y: answer.y };
  const begin = pointOf(box, size, isCurved ? centre : { x: left + turn, y: bottom });
  const end = pointOf(box, size, isCurved ? centre : { x: right + turn, y: top });
  const [x, y] = [(begin.x + end.x) / 2, (begin.y + end.y) / 2];
  const path = new Path2D();
  if (!isCurved) path.rect(begin.x, begin.y, end.x - begin.x, end.y - begin.y);
  if (hasDots) path.arc(x, y, DOT_MARK, 0, 2 * Math.PI);
  else if (isMarked || isCurved) {
    for (const side of [-1, 1]) {
      addLine(path, x + side * 3, y, x + side * 10, y);
      addLine(path, x, y + side * 3, x, y + side * 10);
    }
  }
  strokePath(drawing, path, [
    [3, "--coast-halo"],
    [1.5, "--mark"],
  ]);
}

function addLine(path: Path2D, x1: number, y1: number, x2: number, y2: number): void {
  path.moveTo(x1, y1);
  path.lineTo(x2, y2);
}
