import { visibleDegrees } from "../../cf/projection.js";
import { withUnits } from "../../cf/unit-text.js";
import { indexAt } from "../axis.js";
import {
  type DatasetDescription,
  otherAxes,
  type PicturePart,
  type ReadingCost,
  type VariableDescription,
} from "../protocol.js";
import {
  axisUnitOf,
  count,
  decimalsOf,
  degreesKind,
  shortDegrees,
  stepText,
  stepTexts,
} from "./axis-ticks.js";
import type { PlaneAxis } from "./map/plane-box.js";
import type { ExploreModel } from "./model.js";
import type { ResolvedView } from "./page-state.js";

/** A sentence for people, and what they can do about it. */
export interface StatusMessage {
  readonly kind: "error" | "note";
  readonly text: string;
  readonly actions: readonly { readonly label: string; readonly run: (model: ExploreModel) => void }[];
}

/** How far reading has come, or how long it took, and whether it is not over; empty if nothing is read. */
interface ReadingText {
  readonly progress: string;
  readonly isBusy: boolean;
}

const RETRY = [{ label: "Retry", run: (model: ExploreModel) => model.retry() }];

/** Puts the state of the page into words. */
export function statusOf(model: ExploreModel): ReadingText & { readonly messages: readonly StatusMessage[] } {
  const messages: StatusMessage[] = [];
  const note = (text: string): number => messages.push({ kind: "note", text, actions: [] });
  const failures = [model.failure.value, model.picture.failure.value];
  for (const failure of failures) {
    if (failure === undefined) continue;
    const { sentence, requestId = "" } = failure;
    const text = sentence.includes(requestId) ? sentence : `${sentence} (request ${requestId})`;
    // An answer has an id: without one the server is away, and what is shown may be outdated by now.
    const isAway = failure.mayRetry && failure.requestId === undefined;
    const isShown = isAway && model.picture.frame.value !== undefined;
    const time = model.picture.failedAt.toTimeString().slice(0, 5);
    const shown = isShown ? ` The picture was read before ${time}.` : "";
    messages.push({ kind: "error", text: text + shown, actions: failure.mayRetry ? RETRY : [] });
  }
  const dataset = model.dataset.value;
  if (dataset === undefined)
    return { messages, progress: failures[0] ? "" : "Reading metadata…", isBusy: true };
  const variable = model.variable.value;
  // A dataset without anything to see says so in the middle of the page.
  if (variable?.problem !== undefined && emptinessOf(dataset) === undefined) note(variable.problem);
  for (const problem of [...model.addressProblems.value, ...(model.resolved.value?.problems ?? [])])
    note(problem);
  const message = partMessage(model);
  if (message !== undefined) messages.push(message);
  if (variable?.form !== "image" || variable.problem !== undefined)
    return { messages, progress: "", isBusy: false };
  const frame = model.picture.frame.value;
  if (frame !== undefined && frame.done === frame.total && frame.cells > 0 && frame.missing === frame.cells)
    note(`No values here: all ${count(frame.cells)} cells are missing.`);
  return { messages, ...progressOf(model) };
}

/** Returns a sentence that says why there is nothing to see of a dataset; undefined if there is something. */
export function emptinessOf({ variables }: DatasetDescription): string | undefined {
  if (variables.length === 0) return "This dataset has no variables.";
  const problems = new Set(variables.map(({ problem }) => problem));
  if (problems.has(undefined)) return undefined;
  return `No variable of this dataset can be shown. ${[...problems].join(" ")}`;
}

/** Returns the steps along the axes that the picture does not show, as {@link stepTexts}. */
export function otherSteps({ variable, axes, values, bands, at }: ResolvedView, shown = at): string[] {
  const others = otherAxes(variable, axes).filter((axis) => axis !== bands?.axis);
  return stepTexts(variable, values, shown, others);
}

/** Returns the steps of the picture that is shown, which may be older than what is asked for. */
export function shownSteps(model: ExploreModel, resolved: ResolvedView): string[] {
  const { selection } = model.picture.frame.value?.request ?? {};
  return otherSteps(resolved, selection?.variable === resolved.variable.path ? selection.at : resolved.at);
}

/** Returns what a screen reader says when the picture rests: variable, step, and value at the cross-hair. */
export function announcementOf(model: ExploreModel): string {
  const resolved = model.resolved.value;
  if (resolved === undefined || model.camera.isMoving.value || model.isPlaying.value) return "";
  const pointer = model.probes.hasCrossHair.value ? model.probes.pointer.value : undefined;
  const { variable } = resolved;
  const value =
    pointer === undefined
      ? []
      : [`${pointer.name ?? ""} value ${withUnits(pointer.text, variable.units)}`.trim()];
  return [variable.title, ...otherSteps(resolved), ...value].join(", ");
}

/**
 * Describes the picture for those who do not see it: `Air temperature, 2013-01-01 06:00, from 5°E to 12°E, 45°N to 53°N`. Without
 * latitudes and longitudes the bounds are those of the axes, or rows and columns.
 */
export function pictureText(model: ExploreModel): string {
  const [resolved, box, plane] = [model.resolved.value, model.camera.box.value, model.plane.value];
  if (resolved?.axes === undefined || box === undefined || plane === undefined) return "";
  const { variable, axes } = resolved;
  const names = [variable.title, ...otherSteps(resolved)];
  const x = visiblePart(plane.x, box.left, box.right);
  const y = visiblePart(plane.y, box.bottom, box.top);
  const visible = { left: x[0], right: x[1], bottom: y[0], top: y[1] };
  const seen = plane.projection && visibleDegrees(plane.projection, visible);
  if (plane.aspect === "degrees" || seen !== undefined) {
    const longitudes: Part = seen === undefined ? x : [seen.west, seen.east];
    const [west, east] = degreesOf(longitudes, "longitude");
    const [south, north] = degreesOf(seen === undefined ? y : [seen.south, seen.north], "latitude");
    const around = longitudes[1] - longitudes[0] > 359.9 ? "all longitudes" : `from ${west} to ${east}`;
    return [...names, around, `${south} to ${north}`].join(", ");
  }
  const inCells = model.camera.inCells.value;
  const sides = [
    boundsText(resolved, axes.x, x, inCells, "columns"),
    boundsText(resolved, axes.y, y, inCells, "rows"),
  ];
  return [...names, ...sides].join(", ");
}

type Part = readonly [low: number, high: number];

/** Returns the part of an axis that is visible. */
function visiblePart({ low, high, wraps }: PlaneAxis, one: number, other: number): Part {
  const [least, most] = [Math.min(one, other), Math.max(one, other)];
  return wraps ? [least, most] : [Math.max(low, least), Math.min(high, most)];
}

function degreesOf(part: Part, kind: "latitude" | "longitude"): [string, string] {
  const decimals = decimalsOf((part[1] - part[0]) / 10);
  return [shortDegrees(part[0], kind, decimals), shortDegrees(part[1], kind, decimals)];
}

/** Describes the visible part of an axis: `x from 500 to 620 km`, `time from 2013-01-01 00:00 to 2013-02-01 00:00`, `rows 0 to 49`. */
function boundsText(
  { variable, values, places }: ResolvedView,
  index: number,
  part: Part,
  inCells: boolean,
  name: string,
): string {
  const [axis, own, place] = [variable.axes[index]!, values[index]!, places[index]!];
  const isCounted = place.centres === undefined;
  if (isCounted || own.texts !== undefined) {
    const cells = part.map((value) => Math.max(0, indexAt(place, value)));
    const [first, last] = [Math.min(...cells), Math.max(...cells)];
    if (inCells || own.texts === undefined) return `${name} ${count(first)} to ${count(last)}`;
    return `${axis.dim} from ${stepText(own, first)} to ${stepText(own, last)}`;
  }
  const kind = degreesKind(axis);
  const { factor, units } = axisUnitOf(own);
  const decimals = decimalsOf((part[1] - part[0]) / factor / 10);
  const numbers = part.map((value) => String(Number((value / factor).toFixed(decimals))));
  const ends = kind === undefined ? [numbers[0]!, withUnits(numbers[1]!, units)] : degreesOf(part, kind);
  return `${axis.dim} from ${ends.join(" to ")}`;
}

/** Writes a number of bytes: `1.1 GB`. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

function costText({ chunks, bytes }: ReadingCost, variable: VariableDescription | undefined): string {
  const because = (variable?.levels.length ?? 0) > 0 ? "" : ", and this dataset has no overviews";
  return `${chunksText(chunks)}, ${bytesText(bytes)}${because}`;
}

function chunksText(chunks: number): string {
  return `${count(chunks)} ${chunks === 1 ? "chunk" : "chunks"}`;
}

/** Says what a picture would cost that is too much to read unasked; undefined if it is not. */
export function tooMuchText({ picture, variable }: ExploreModel): string | undefined {
  const tooMuch = picture.tooMuch.value;
  return tooMuch && `This picture needs ${costText(tooMuch, variable.value)}.`;
}

/** Says what of a picture is shown, and what the whole would cost, if that is too much to read unasked. */
function partMessage({ picture, wholeCost, variable }: ExploreModel): StatusMessage | undefined {
  const [whole, part] = [wholeCost.value, picture.part.value];
  const cost = whole ?? part?.whole;
  if (cost === undefined) return undefined;
  const read = picture.progress.value?.total ?? 0;
  const shown = whole === undefined && part !== undefined ? shownPart(part, read) : CENTRE;
  return {
    kind: "note",
    text: `${shown}: the whole picture needs ${costText(cost, variable.value)}.`,
    actions: [{ label: "Read all", run: (model) => model.readAll() }],
  };
}

const CENTRE = "Only the centre is shown";

function shownPart({ everyRow, everyColumn, isOfRows, isOfColumns, share }: PicturePart, read: number) {
  if (share < 1) return CENTRE;
  if (everyRow * everyColumn === 1) return `The places in ${chunksText(read)} are shown`;
  if (isOfRows && everyColumn === 1) return `Every ${ordinal(everyRow)} row is shown`;
  if (isOfColumns && everyRow === 1) return `Every ${ordinal(everyColumn)} column is shown`;
  return `One chunk in ${count(everyRow * everyColumn)} is shown, enlarged over its neighbours`;
}

/** Writes the ordinal of a number above 1: `12th`. */
function ordinal(number: number): string {
  const isTeen = Math.floor((number % 100) / 10) === 1;
  return `${count(number)}${(isTeen ? undefined : ["th", "st", "nd", "rd"][number % 10]) ?? "th"}`;
}

function progressOf({ picture, failure }: ExploreModel): ReadingText {
  const hasFailed = picture.failure.value !== undefined;
  if (picture.progress.value === undefined) {
    const isBusy = !hasFailed && failure.value === undefined && picture.tooMuch.value === undefined;
    return { progress: isBusy ? "Finding the colour range…" : "", isBusy };
  }
  const { done, total, ms } = picture.progress.value;
  const chunks = chunksText(total);
  if (done === total) return { progress: `Read ${chunks} in ${Math.round(ms)} ms`, isBusy: false };
  if (hasFailed) return { progress: `Read ${count(done)} of ${chunks}`, isBusy: false };
  return { progress: `Reading ${count(done)} of ${chunks}…`, isBusy: true };
}
