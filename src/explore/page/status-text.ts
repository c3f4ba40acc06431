import { otherAxes } from "../protocol.js";
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
  if (variable === undefined) note("This dataset has no variables.");
  else if (variable.problem !== undefined) note(variable.problem);
  for (const problem of [...model.addressProblems.value, ...(model.resolved.value?.problems ?? [])])
    note(problem);
  const message = tooMuchMessage(model);
  if (message !== undefined) messages.push(message);
  if (variable?.form !== "image" || variable.problem !== undefined)
    return { messages, progress: "", isBusy: false };
  const missing = missingSentence(model);
  if (missing !== undefined) note(missing);
  return { messages, ...progressOf(model) };
}

/** Returns what a screen reader says when the picture rests: variable, step, and value at the cross-hair. */
export function announcementOf(model: ExploreModel): string {
  const resolved = model.resolved.value;
  if (resolved === undefined || model.camera.isMoving.value || model.isPlaying.value) return "";
  const { variable, axes, at, values } = resolved;
  const steps = otherAxes(variable, axes).map(
    (index) => `${variable.dims[index]} ${stepText(values[index]!, at[index]!)}`,
  );
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

function tooMuchMessage(model: ExploreModel): StatusMessage | undefined {
  const whole = model.wholeCost.value;
  const tooMuch = model.picture.tooMuch.value ?? whole;
  if (tooMuch === undefined) return undefined;
  const hasLevels = (model.variable.value?.levels.length ?? 0) > 0;
  const because = hasLevels ? "" : ", and this dataset has no overviews";
  const cost = `is ${count(tooMuch.chunks)} chunks, ${bytesText(tooMuch.bytes)}${because}`;
  const readAll = { label: "Read all", run: (model: ExploreModel) => model.readAll() };
  if (whole !== undefined)
    return { kind: "note", text: `The whole picture ${cost}: this is its centre.`, actions: [readAll] };
  const showCentre = { label: "Show the centre", run: (model: ExploreModel) => model.camera.showCentre() };
  return { kind: "note", text: `This picture ${cost}.`, actions: [showCentre, readAll] };
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
