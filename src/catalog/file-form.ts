import { createHash } from "node:crypto";
import { cfTimeScale } from "../cf/cf-time.js";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { describePart, type PartArray, type PartDescription } from "../join/describe-part.js";
import { joinSteps } from "../join/join-parts.js";
import { stringifyJson } from "../json/stringify-json.js";

/** What tells whether a dataset and others are parts of one. Plain data, some hundred bytes. */
export interface FileForm {
  /** Hash of all that parts of one dataset have in common: variables, types, dimensions, lengths and coordinates, but for the time. */
  readonly key: string;
  readonly location: string;
  /** Whether parts have a dimension of time, or are one step of it each. */
  readonly kind: "concat" | "stack";
  /** Name of the time; undefined if the dataset has none. */
  readonly dimension: string | undefined;
  /** The time with its first and last value alone. */
  readonly ends: PartArray | undefined;
  /** Names of dimensions, which a new one cannot have. */
  readonly dims: readonly string[];
}

/** Longest coordinate that is compared, in values, and number of arrays: others take too long to read. */
const MAX_VALUES = 65_536;
const MAX_ARRAYS = 1_000;

/**
 * Describes a dataset as a part of others, as joins do. Undefined if it cannot be one: its times are in no order, or it is too large to
 * compare.
 * @throws ZpublishError if a coordinate cannot be read
 */
export async function readFileForm({
  tree,
  arrays,
  location,
}: DatasetSnapshot): Promise<FileForm | undefined> {
  if (arrays.size === 0 || arrays.size > MAX_ARRAYS) return undefined;
  const groups = Array.from(tree.groups.values(), ({ path, attrs, variables }) => ({
    path,
    attrs,
    arrays: [...variables.keys()].map(
      (name) => arrays.get(path === "/" ? name : `${path.slice(1)}/${name}`)!.stored,
    ),
  }));
  const isLong = groups.some((group) =>
    group.arrays.some(({ shape: [length = 1, ...others] }) => others.length === 0 && length > MAX_VALUES),
  );
  if (isLong) return undefined;
  const part = await describePart(location, { groups, refused: [] }, undefined);
  const time = timeOf(part);
  const ends = time && (await endsOf(time));
  if (time !== undefined && ends === undefined) return undefined;
  return {
    ...{ location, ends, dimension: time?.stored.name, kind: time?.dims.length === 1 ? "concat" : "stack" },
    key: keyOf(part, time),
    dims: [...new Set(part.arrays.flatMap(({ dims }) => dims))],
  };
}

/** Finds the time of a part: the coordinate of a dimension, else a scalar. */
function timeOf({ arrays }: PartDescription): PartArray | undefined {
  const times = arrays.filter(
    ({ stored: { attrs, dataType }, values }) =>
      values !== undefined && (dataType.kind === "M" || cfTimeScale(attrs) !== undefined),
  );
  const isNamedTime = ({ stored }: PartArray) => stored.name === "time";
  const scalars = times.filter(({ dims }) => dims.length === 0);
  return times.find(({ dims }) => dims.length === 1) ?? scalars.find(isNamedTime) ?? scalars[0];
}

/** Reduces a time to its first and last value. Undefined if it has none, or if its values are in no order. */
async function endsOf(time: PartArray): Promise<PartArray | undefined> {
  const { stored, values = new Uint8Array() } = time;
  const { itemSize } = stored.dataType;
  if (values.length < itemSize || itemSize === 0) return undefined;
  if (time.dims.length === 0) return time;
  if (!(await canBeJoined([partOf("", time)], { kind: "concat", dimension: stored.name }))) return undefined;
  const count = Math.min(2, values.length / itemSize);
  const ends = [values.subarray(0, itemSize), values.subarray(values.length - itemSize)].slice(0, count);
  return { ...time, stored: { ...stored, shape: [count] }, values: Buffer.concat(ends) };
}

/** Makes a part of nothing but one array. */
export function partOf(name: string, array: PartArray | undefined): PartDescription {
  if (array === undefined) return { name, groups: [], arrays: [], refused: [] };
  const { stored } = array;
  const path = `/${stored.path.slice(0, Math.max(0, stored.path.length - stored.name.length - 1))}`;
  return { name, groups: [{ path, attrs: {} }], arrays: [array], refused: [] };
}

/** Tells whether parts can be joined, as a dataset of them would be. */
export async function canBeJoined(
  parts: readonly PartDescription[],
  join: { readonly kind: "concat" | "stack"; readonly dimension: string },
): Promise<boolean> {
  try {
    const { refused } = await runCooperatively(joinSteps(parts, join));
    return refused.length === 0;
  } catch (error) {
    if (error instanceof ZpublishError) return false;
    throw error;
  }
}

/** Hashes all of a part but the steps of its time. */
function keyOf({ arrays }: PartDescription, time: PartArray | undefined): string {
  const along = time?.dims[0];
  const hash = createHash("sha256");
  for (const array of arrays) {
    const { stored, dims, values } = array;
    const { path, dataType, shape, attrs } = stored;
    const lengths = shape.map((length, axis) => (dims[axis] === along ? "along" : length));
    const units = array === time ? null : (attrs.units ?? null);
    hash.update(`${stringifyJson([path, dims, dataType.zarr, lengths, units])}\n`);
    if (values !== undefined && array !== time && (along === undefined || !dims.includes(along)))
      hash.update(values);
  }
  return hash.digest("base64url").slice(0, 22);
}
