import { type DatasetDescription, otherAxes, type PicturePart, type ReadingCost } from "../protocol.js";
import { count, stepText } from "./axis-ticks.js";
import type { ExploreModel } from "./model.js";

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
    const shown = isShown ? ` What is shown was read before ${time}.` : "";
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
  const missing = missingSentence(model);
  if (missing !== undefined) note(missing);
  return { messages, ...progressOf(model) };
}

/** Returns a sentence that says why there is nothing to see of a dataset; undefined if there is something. */
export function emptinessOf({ variables }: DatasetDescription): string | undefined {
  if (variables.length === 0) return "This dataset has no variables.";
  const problems = new Set(variables.map(({ problem }) => problem));
  if (problems.has(undefined)) return undefined;
  return `No variable of this dataset can be shown. ${[...problems].join(" ")}`;
}

/** Returns what a screen reader says when the picture rests: variable, step, and value at the cross-hair. */
export function announcementOf(model: ExploreModel): string {
  const resolved = model.resolved.value;
  if (resolved === undefined || model.camera.isMoving.value || model.isPlaying.value) return "";
  const { variable, axes, at, values, bands } = resolved;
  const steps = otherAxes(variable, axes)
    .filter((index) => index !== bands?.axis)
    .map((index) => `${variable.dims[index]} ${stepText(values[index]!, at[index]!)}`);
  const pointer = model.probes.hasCrossHair.value ? model.probes.pointer.value : undefined;
  const value = pointer === undefined ? [] : [`value ${pointer.text} ${variable.units ?? ""}`.trim()];
  return [variable.title, ...steps, ...value].join(", ");
}

/** Writes a number of bytes: `1.1 GB`. */
export function bytesText(bytes: number): string {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  const value = bytes / 1000 ** power;
  return `${power > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[power]}`;
}

/** Says what of a picture is shown, and what the whole would cost, if that is too much to read unasked. */
function partMessage({ picture, wholeCost, variable }: ExploreModel): StatusMessage | undefined {
  const actions = [{ label: "Read all", run: (model: ExploreModel) => model.readAll() }];
  const costOf = ({ chunks, bytes }: ReadingCost) =>
    `${count(chunks)} ${chunks === 1 ? "chunk" : "chunks"}, ${bytesText(bytes)}`;
  const hasLevels = (variable.value?.levels.length ?? 0) > 0;
  const because = hasLevels ? "" : ", and this dataset has no overviews";
  const tooMuch = picture.tooMuch.value;
  if (tooMuch !== undefined)
    return { kind: "note", text: `This picture is ${costOf(tooMuch)}${because}.`, actions };
  const whole = wholeCost.value;
  if (whole !== undefined) {
    const text = `The whole picture is ${costOf(whole)}${because}: this is its centre.`;
    return { kind: "note", text, actions };
  }
  const part = picture.part.value;
  if (part === undefined) return undefined;
  const { chunks, bytes } = part.whole;
  const all = `${count(chunks)} chunks (${bytesText(bytes)}) are too many to read at once.`;
  return { kind: "note", text: `${shownPart(part)}: ${all}`, actions };
}

function shownPart({ everyRow, everyColumn, isOfRows, isOfColumns, share }: PicturePart): string {
  if (share < 1) return "Only the centre is shown";
  if (isOfRows && everyColumn === 1) return `Every ${ordinal(everyRow)} row is shown`;
  if (isOfColumns && everyRow === 1) return `Every ${ordinal(everyColumn)} column is shown`;
  return `One chunk in ${count(everyRow * everyColumn)} is shown, in place of those around it`;
}

/** Writes the ordinal of a number above 1: `12th`. */
function ordinal(number: number): string {
  const isTeen = Math.floor((number % 100) / 10) === 1;
  return `${count(number)}${(isTeen ? undefined : ["th", "st", "nd", "rd"][number % 10]) ?? "th"}`;
}

function missingSentence(model: ExploreModel): string | undefined {
  const frame = model.picture.frame.value;
  if (frame === undefined || frame.done < frame.total || frame.cells === 0 || frame.missing < frame.cells)
    return undefined;
  return `No values here: all ${count(frame.cells)} cells are missing.`;
}

function progressOf({ picture, failure }: ExploreModel): ReadingText {
  const hasFailed = picture.failure.value !== undefined;
  if (picture.progress.value === undefined) {
    const isBusy = !hasFailed && failure.value === undefined;
    return { progress: isBusy ? "Finding the range…" : "", isBusy };
  }
  const { done, total, ms } = picture.progress.value;
  const read = `${count(done)}/${count(total)} chunks`;
  if (done === total) return { progress: `${read} · ${Math.round(ms)} ms`, isBusy: false };
  if (hasFailed) return { progress: read, isBusy: false };
  return { progress: `Reading ${count(done)} of ${count(total)} chunks…`, isBusy: true };
}
