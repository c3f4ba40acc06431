import { ZpublishError } from "../errors.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import { continuedLongitudes, firstIndex, orderOf, type RegularAxis } from "./axis-order.js";
import type { AxisRole } from "./axis-roles.js";
import { type CfTimeScale, cfTimeOf, cfTimeScale, isoText, timePeriod } from "./cf-time.js";
import { roundFloat } from "./packing.js";

/** One axis of an array, as coordinates describe it. Plain data. */
export interface CoordinateAxis {
  readonly dim: string;
  readonly length: number;
  readonly role: AxisRole | undefined;
  /** Path of the coordinate variable; undefined if the axis has indexes only. */
  readonly variable: string | undefined;
  /**
   * Unpacked numbers, NaN if missing, of which integers beyond 2⁵³ are `bigint`s; times as numbers of their unit; texts as texts.
   * Undefined if there is no coordinate variable, or one of another type.
   */
  readonly values: Float64Array | BigInt64Array | readonly string[] | undefined;
  /** First value and step if the axis is regular. */
  readonly regular: RegularAxis | undefined;
  /** CF's units of the values; of `datetime64` too. */
  readonly units: string | undefined;
  /** CF's calendar of times; undefined for other values. */
  readonly calendar: string | undefined;
  /** Bytes of a float as xarray decodes the coordinate: 2 or 4 round labels. Undefined for integers, times and texts. */
  readonly floatBytes: number | undefined;
  /** Whether values that differ by 360 are one place. */
  readonly isLongitude: boolean;
}

/** Steps of an axis: those of a range, or in the order of a list. */
export type Steps =
  | { readonly begin: number; readonly count: number; readonly step: 1 }
  | { readonly indexes: readonly number[] };

/** How a label finds a step: the step of that label, the nearest one, the one before it, or the one after it in the order of the axis. */
export type LabelMethod = "exact" | "nearest" | "ffill" | "bfill";

/** What is compared: a number, a text, or nanoseconds since day 0 of the calendar. */
type Place = number | bigint | string;

/** An axis as look-ups see it. */
interface Labels {
  readonly axis: CoordinateAxis;
  readonly time: CfTimeScale | undefined;
  /** 1 if places ascend, -1 if they descend, 0 if they do neither. */
  readonly order: 1 | -1 | 0;
  /** A value that several steps have. */
  readonly repeated: Place | undefined;
  /** Steps by label; only if places are in no order. */
  readonly steps: ReadonlyMap<string, number> | undefined;
  placeOf(index: number): Place;
  /** Resolution of times; undefined until it is needed. */
  resolution: bigint | undefined;
}

const known = new WeakMap<CoordinateAxis, Labels>();

function labelsOf(axis: CoordinateAxis): Labels {
  const found = known.get(axis) ?? createLabels(axis);
  known.set(axis, found);
  return found;
}

function createLabels(axis: CoordinateAxis): Labels {
  const { values, calendar, units = null, isLongitude } = axis;
  const time = calendar === undefined ? undefined : cfTimeScale({ units, calendar });
  const isMissing = (value: Place) => Number.isNaN(value) || (time !== undefined && value === NOT_A_TIME);
  let places: CoordinateAxis["values"] = values;
  const isCut = values !== undefined && [values[0] ?? 0, values.at(-1) ?? 0].some(isMissing);
  let order = isCut ? undefined : orderOf(values ?? [], false);
  if (order === undefined && isLongitude && places instanceof Float64Array) {
    places = continuedLongitudes(places);
    order = orderOf(places, false);
  }
  const placeOf = (index: number): Place => {
    const value = places?.[index] ?? index;
    return time === undefined || typeof value === "string" || isMissing(value)
      ? value
      : cfTimeOf(value, time);
  };
  let repeated: Place | undefined;
  const steps = order === undefined ? new Map<string, number>() : undefined;
  for (let index = 0; index < (places?.length ?? 0) && repeated === undefined; index++) {
    const place = places![index]!;
    if (steps === undefined) {
      if (index > 0 && place === places![index - 1]) repeated = place;
    } else if (!isMissing(place)) {
      const key = String(placeOf(index));
      if (steps.has(key)) repeated = place;
      steps.set(key, index);
    }
  }
  return { axis, time, order: order ?? 0, repeated, steps, placeOf, resolution: undefined };
}

/**
 * Finds the step of a label, as `sel` of xarray does: labels of floats are rounded to the coordinate's type; a tie of two nearest steps goes
 * to the greater value; steps before and after are those in the order of the axis. Times are texts of ISO 8601 in the calendar of the
 * axis, of which a partial one is its first instant. Longitudes are equal modulo 360. An axis without coordinate is labelled by index.
 * @param tolerance Greatest distance, in units of the axis; for times also a duration such as `PT6H`.
 * @returns -1 if the step is farther away, or if there is none before or after the label
 * @throws ZpublishError `invalid-query` if no step has an exact label, if the label is none of the axis' kind, if labels occur twice, or
 * if they are in no order that a method other than `exact` needs
 */
export function indexOf(
  axis: CoordinateAxis,
  label: string | number,
  method: LabelMethod,
  tolerance?: string | number,
): number {
  const labels = labelsOf(axis);
  const wanted = placeOfLabel(labels, label, true);
  checkOrder(labels, label, method === "exact");
  if (method === "nearest" && typeof wanted === "string")
    throw refusal(axis, "the method exact, ffill or bfill for texts", "nearest");
  const found = findPlace(labels, wanted, method);
  if (method === "exact") {
    if (found.index !== -1) return found.index;
    throw refusal(axis, `a label of the axis (${extentText(axis)})`, label);
  }
  const isNear = tolerance === undefined || !(found.distance > toleranceOf(labels, tolerance));
  return isNear ? found.index : -1;
}

/**
 * Finds what xarray's `sel` gives for one label: a step; or the steps of a whole period if the label is a date that is less precise than
 * the times of the axis, such as `2020-01`, or `2020-01-01` on an axis of hours. pandas' rule is applied to all calendars.
 * @throws ZpublishError `invalid-query`, as {@link indexOf}, or if no step lies in the period
 */
export function labelSelection(axis: CoordinateAxis, label: string | number): number | Steps {
  const labels = labelsOf(axis);
  const period = labels.time && timePeriod(String(label), labels.time.calendar);
  if (period === undefined || period.end - period.begin <= resolutionOf(labels))
    return indexOf(axis, label, "exact");
  const found = indexRange(axis, String(label), String(label));
  if ("indexes" in found || found.count > 0) return found;
  throw refusal(axis, `a date of the axis (${extentText(axis)})`, label);
}

/**
 * Finds the steps from one label to another, both included, as xarray's `sel(slice)` does; a partial date stands for its whole period.
 * Bounds on a descending axis may come in either order. A range of longitudes goes eastward from its first bound, and its steps are in
 * that order if it crosses the seam of the axis.
 * @param from Undefined for the beginning of the axis.
 * @param to Undefined for its end.
 * @returns A range without steps if nothing lies between the bounds
 * @throws ZpublishError `invalid-query` if a bound is none of the axis' kind, or if labels occur twice or are in no order
 */
export function indexRange(axis: CoordinateAxis, from: string | undefined, to: string | undefined): Steps {
  const labels = labelsOf(axis);
  const { order, time } = labels;
  const [low, high] = [from, to].map((text) =>
    text === undefined ? undefined : placeOfLabel(labels, text, false),
  );
  checkOrder(labels, from ?? to ?? "..", false);
  if (axis.isLongitude) return longitudeRange(labels, low as number | undefined, high as number | undefined);
  const lastOf = (text: string | undefined, bound: Place | undefined) =>
    time === undefined || text === undefined ? bound : timePeriod(text, time.calendar)!.end - 1n;
  if (order === -1) {
    // Open ends of numbers and texts are those of the axis, as in xarray; open ends of times are in the past and in the future.
    if (time === undefined && (low === undefined || high === undefined)) return between(labels, high, low);
    if (low !== undefined && high !== undefined && low > high)
      return between(labels, high, lastOf(from, low));
  }
  return between(labels, low, lastOf(to, high));
}

/** Returns the steps whose places are in an interval, both ends included. Undefined ends are open. */
function between(labels: Labels, least: Place | undefined, greatest: Place | undefined): Steps {
  const { order } = labels;
  const [first, last] = order === 1 ? [least, greatest] : [greatest, least];
  const begin =
    first === undefined ? 0 : firstStep(labels, (place) => (order === 1 ? place >= first : place <= first));
  const { length } = labels.axis;
  const end =
    last === undefined ? length : firstStep(labels, (place) => (order === 1 ? place > last : place < last));
  return { begin, count: Math.max(0, end - begin), step: 1 };
}

/** Returns the first step of which a condition is true that is true of all after it; the length of the axis if there is none. */
function firstStep({ axis, placeOf }: Labels, isReached: (place: Place) => boolean): number {
  return firstIndex(axis.length, (index) => isReached(placeOf(index)));
}

interface Found {
  /** -1 for none. */
  readonly index: number;
  /** From the label, 0 for texts; nanoseconds of times. */
  readonly distance: number | bigint;
}

const NONE: Found = { index: -1, distance: 0 };

function findPlace(labels: Labels, wanted: Place, method: LabelMethod): Found {
  if (labels.steps !== undefined) return { index: labels.steps.get(String(wanted)) ?? -1, distance: 0 };
  return labels.axis.isLongitude
    ? findLongitude(labels, wanted as number, method)
    : findInOrder(labels, wanted, method);
}

function findInOrder(labels: Labels, wanted: Place, method: LabelMethod): Found {
  const { order, placeOf, axis } = labels;
  const after = firstStep(labels, (place) => (order === 1 ? place >= wanted : place <= wanted));
  const foundAt = (index: number): Found =>
    index < 0 || index >= axis.length ? NONE : { index, distance: distanceOf(placeOf(index), wanted) };
  const [left, right] = [foundAt(after - 1), foundAt(after)];
  const place = right === NONE ? undefined : placeOf(after);
  // Numbers and bigints are compared by value.
  if (place !== undefined && !(place < wanted) && !(place > wanted)) return right;
  if (method === "exact") return NONE;
  if (method === "ffill") return left;
  if (method === "bfill" || left === NONE) return right;
  const isLeft = order === 1 ? left.distance < right.distance : left.distance <= right.distance;
  return right === NONE || isLeft ? left : right;
}

function distanceOf(one: Place, other: Place): number | bigint {
  if (typeof one === "string" || typeof other === "string") return 0;
  const difference =
    typeof one === "bigint" && typeof other === "bigint" ? one - other : Number(one) - Number(other);
  return difference < 0 ? -difference : difference;
}

const TURN = 360;

/** Finds a longitude at its place on the axis, or a turn before that. */
function findLongitude(labels: Labels, wanted: number, method: LabelMethod): Found {
  const [least, greatest] = endsOf(labels);
  const isInside = wanted >= least && wanted <= greatest;
  const near = isInside ? wanted : wanted - Math.floor((wanted - least) / TURN) * TURN;
  let best = NONE;
  for (const place of [near, near - TURN]) {
    const nearest = findInOrder(labels, place, "nearest");
    if (nearest !== NONE && isSameLongitude(labels, labels.placeOf(nearest.index) as number, wanted))
      return { index: nearest.index, distance: 0 };
    const found = method === "nearest" ? nearest : findInOrder(labels, place, method);
    // A step before or after a label is less than half a turn away, unless it is next to the label on the axis itself.
    if (found === NONE || (method !== "nearest" && place !== near && found.distance > TURN / 2)) continue;
    // Of equally near ones the eastward one, as of numbers the greater one.
    if (best === NONE || found.distance <= best.distance) best = found;
  }
  return best;
}

/** Compares longitudes a whole number of turns apart. Turns are added to the smaller one, which loses no digits. */
function isSameLongitude({ axis }: Labels, one: number, other: number): boolean {
  const turns = Math.round((other - one) / TURN) * TURN;
  return (
    roundFloat(one + turns, axis.floatBytes) === other || roundFloat(other - turns, axis.floatBytes) === one
  );
}

function endsOf({ placeOf, axis }: Labels): readonly [least: number, greatest: number] {
  const [first, last] = [placeOf(0) as number, placeOf(axis.length - 1) as number];
  return first < last ? [first, last] : [last, first];
}

function longitudeRange(labels: Labels, from: number | undefined, to: number | undefined): Steps {
  if (labels.axis.length === 0) return { begin: 0, count: 0, step: 1 };
  const [least, greatest] = endsOf(labels);
  const inside = (bound: number | undefined) => {
    if (bound === undefined || (bound >= least && bound <= greatest)) return bound;
    const moved = bound - Math.floor((bound - least) / TURN) * TURN;
    return moved <= greatest ? moved : bound;
  };
  if (from === undefined || to === undefined) {
    const [first, last] = [inside(from), inside(to)];
    return labels.order === 1 ? between(labels, first, last) : between(labels, last, first);
  }
  // A range whose second bound is the smaller one crosses the seam.
  const laps = to < from ? Math.ceil((from - to) / TURN) : 0;
  const { axis, order } = labels;
  const pieces: number[][] = [];
  const last = Math.floor((least - to) / TURN) - laps;
  for (let turn = Math.ceil((greatest - from) / TURN); turn >= last; turn--) {
    // Turns are added to the bound or taken from the place: one of both loses no digits.
    const isAfter = (place: number) => place >= from + turn * TURN || place - turn * TURN >= from;
    const all = (turn + laps) * TURN;
    const isBeyond = (place: number) => place > to + all && place - all > to;
    const begin = firstStep(labels, (place) =>
      order === 1 ? isAfter(place as number) : !isBeyond(place as number),
    );
    const end = firstStep(labels, (place) =>
      order === 1 ? isBeyond(place as number) : !isAfter(place as number),
    );
    if (end - begin === axis.length) return { begin, count: end, step: 1 };
    if (end > begin) pieces.push(Array.from({ length: end - begin }, (_, index) => begin + index));
  }
  if (pieces.length <= 1) return { begin: pieces[0]?.[0] ?? 0, count: pieces[0]?.length ?? 0, step: 1 };
  return { indexes: [...new Set(pieces.flatMap((piece) => (order === 1 ? piece : piece.reverse())))] };
}

const DURATION = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const DURATION_SECONDS = [604_800, 86_400, 3_600, 60, 1];

function toleranceOf({ axis, time }: Labels, tolerance: string | number): number | bigint {
  const parts = time === undefined ? null : DURATION.exec(String(tolerance));
  const seconds = parts
    ?.slice(1)
    .reduce((sum, part, index) => sum + Number(part ?? 0) * DURATION_SECONDS[index]!, 0);
  if (seconds !== undefined) return BigInt(Math.round(seconds * 1e9));
  const number = numberOf(tolerance);
  if (!(number >= 0)) throw refusal(axis, `a tolerance in ${axis.units ?? "units of the axis"}`, tolerance);
  return time === undefined ? number : cfTimeOf(number, { ...time, reference: 0n });
}

const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

function numberOf(label: string | number): number {
  return typeof label === "number" || NUMBER.test(label) ? Number(label) : Number.NaN;
}

/** Longitudes that are read as such. */
const MAX_LONGITUDE = 720;

/** @param isRounded Whether numbers are rounded to the type of the coordinate: xarray rounds labels, but not the bounds of ranges. */
function placeOfLabel({ axis, time }: Labels, label: string | number, isRounded: boolean): Place {
  const { values, calendar, isLongitude } = axis;
  if (time !== undefined) {
    const period = timePeriod(String(label), time.calendar);
    if (period !== undefined) return period.begin;
    throw refusal(axis, `a date of the calendar ${calendar} as ISO 8601 has it (${extentText(axis)})`, label);
  }
  if (Array.isArray(values)) return String(label);
  if (axis.variable !== undefined && values === undefined)
    throw refusal(axis, "an index, since its coordinate holds neither numbers nor texts", label);
  const number = numberOf(label);
  if (Number.isNaN(number)) throw refusal(axis, `a number (${extentText(axis)})`, label);
  if (isLongitude && Math.abs(number) > MAX_LONGITUDE)
    throw refusal(axis, `a longitude from -${MAX_LONGITUDE} to ${MAX_LONGITUDE}`, label);
  if (values instanceof BigInt64Array && /^\s*[+-]?\d+\s*$/.test(String(label))) return BigInt(label);
  return isRounded ? roundFloat(number, axis.floatBytes) : number;
}

function checkOrder({ axis, order, repeated }: Labels, label: string | number, isExact: boolean): void {
  if (repeated !== undefined)
    throw refusal(axis, "an index, since some of its labels occur several times", label);
  if (order === 0 && !isExact)
    throw refusal(axis, "an index or an exact label, since its labels neither ascend nor descend", label);
}

const RESOLUTIONS = [
  ...[86_400_000_000_000n, 3_600_000_000_000n, 60_000_000_000n],
  ...[1_000_000_000n, 1_000_000n, 1000n, 1n],
];

/** Returns the nanoseconds of the longest unit, up to days, of which all times of an axis are whole numbers, as pandas does. */
function resolutionOf(labels: Labels): bigint {
  const { axis, placeOf } = labels;
  if (labels.resolution !== undefined) return labels.resolution;
  // All steps of a regular axis are as far apart as the first two.
  const count = axis.regular === undefined ? axis.length : Math.min(2, axis.length);
  let level = 0;
  for (let index = 0; index < count; index++) {
    const place = placeOf(index);
    if (typeof place === "bigint") while (place % RESOLUTIONS[level]! !== 0n) level++;
  }
  labels.resolution = RESOLUTIONS[level]!;
  return labels.resolution;
}

/** Writes the first and the last label of an axis, for messages: `75 to 15`, `2013-01-01T00:00:00 to 2014-12-31T18:00:00`. */
export function extentText(axis: CoordinateAxis): string {
  if (axis.length === 0) return "no steps";
  const [first, last] = [labelText(axis, 0), labelText(axis, axis.length - 1)];
  return axis.length === 1 ? first : `${first} to ${last}`;
}

/** Writes the label of a step: a number, a text, or a time as ISO 8601. */
export function labelText(axis: CoordinateAxis, index: number): string {
  const { time } = labelsOf(axis);
  const value = axis.values?.[index] ?? index;
  if (time === undefined || typeof value === "string") return String(value);
  if (Number.isNaN(value) || value === NOT_A_TIME) return "NaT";
  return isoText(cfTimeOf(value, time), time.calendar) ?? String(value);
}

/**
 * Writes the time between the steps of an axis as a duration of ISO 8601: `PT6H`; undefined if it differs or is no whole
 * number of seconds, or if there are no times.
 */
export function periodText(axis: CoordinateAxis): string | undefined {
  const { time } = labelsOf(axis);
  if (time === undefined || axis.regular === undefined) return undefined;
  const step = cfTimeOf(axis.regular.step, { ...time, reference: 0n });
  const found = DURATION_UNITS.find(([length]) => step > 0n && step % length === 0n);
  return found && `P${found[1]}${step / found[0]}${found[2]}`;
}

const DURATION_UNITS = [
  [86_400_000_000_000n, "", "D"],
  [3_600_000_000_000n, "T", "H"],
  [60_000_000_000n, "T", "M"],
  [1_000_000_000n, "T", "S"],
] as const;

const MAX_SHOWN = 100;

function refusal({ dim }: CoordinateAxis, expected: string, received: string | number): ZpublishError {
  const text = String(received);
  const input = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
  return new ZpublishError("invalid-query", `Axis '${dim}': expected ${expected}, received '${input}'`, {
    details: { parameter: dim.slice(0, MAX_SHOWN), type: "label", input },
  });
}
