import { hasFlags, type Packing, packingOf } from "../../cf/packing.js";
import { encoderRevision } from "../../codec/encoder-revision.js";
import { isNumeric, openRows } from "../../codec/item-rows.js";
import { LazyMap } from "../../collections/lazy-map.js";
import { ZpublishError } from "../../errors.js";
import { isJsonArray, type JsonObject, type JsonValue, toBigInt } from "../../json/json-value.js";
import type { DataTree, Group, Variable } from "../../model/data-tree.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { encodeFillItem, fillItemToJson } from "../../model/fill-value.js";
import type { ChunkReader, ChunkSource, ServedChunks } from "../../zarr/chunk-reader.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import { codecRule, completeCodec, encodeProblem } from "../../zarr/plan/codec-rules.js";
import { createSteps, encodedCodec } from "../../zarr/plan/codec-steps.js";
import { createComputePlan, createEncodingPlan } from "../../zarr/plan/create-encoding-plan.js";
import {
  type CoarsenMethod,
  type EncodingPlan,
  growthOf,
  type LevelMethod,
  unservable,
} from "../../zarr/plan/encoding-plan.js";
import type { StoredArray, StoredFill } from "../../zarr/stored-array.js";
import type { PlanWithCodecs } from "../../zarr/v3/portable.js";
import {
  createServedArray,
  type DatasetSnapshot,
  type OverviewLevels,
  type ServedArray,
} from "../dataset.js";

/** The form of the values of a level. */
interface LevelValues {
  readonly dataType: DataType;
  readonly fill: StoredFill;
  /** One item that stands for a missing value; null if there are none. */
  readonly missingItem: Uint8Array | null;
  /** Whether a block of absent chunks makes an absent chunk. */
  readonly absentIsAbsent: boolean;
  /** Returns the attributes that still hold. */
  attributesOf(attrs: JsonObject): JsonObject;
}

/** Attributes that mark missing values, of which a float has NaN. */
const MARKS = ["_FillValue", "missing_value", "_Unsigned"];
/** Attributes about packed numbers. */
const PACKING = ["scale_factor", "add_offset", "valid_min", "valid_max", "valid_range"];

/** Chooses the form of a level's values. @param keepsType As in `LevelRequest`. */
function levelValues(
  { dataType, fill, attrs }: StoredArray,
  packing: Packing,
  method: LevelMethod,
  keepsType: boolean,
): LevelValues {
  const isKept = method !== "mean" || (keepsType && dataType.kind !== "f");
  if (isKept) {
    return {
      dataType,
      fill,
      missingItem:
        method === "nearest" || method === "bounds"
          ? null
          : missingItemOf(dataType, packing, fill.item, attrs),
      // All that is made of fill values is the fill value.
      absentIsAbsent: fill.absentIsServed,
      attributesOf: (given) => given,
    };
  }
  const to = meanType(dataType, packing);
  const item = encodeFillItem("NaN", to);
  const isPacked = packing.scale !== 1 || packing.offset !== 0;
  const obsolete = new Set([...MARKS, ...(isPacked ? PACKING : [])]);
  return {
    dataType: to,
    fill: { served: fillItemToJson(item, to), item, absentIsServed: true },
    missingItem: item,
    absentIsAbsent: isMissingItem(fill.item ?? new Uint8Array(dataType.itemSize), dataType, packing),
    attributesOf: (given) => Object.fromEntries(Object.entries(given).filter(([key]) => !obsolete.has(key))),
  };
}

/** Returns the type of unpacked means: single floats if they tell values apart, and the numbers between them. */
function meanType({ kind, itemSize }: DataType, { scale, offset }: Packing): DataType {
  const isShort = itemSize <= 2;
  if (kind === "f") return parseDataType(itemSize <= 4 ? "<f4" : "<f8");
  const greatest = Math.abs(offset) + 2 ** (8 * itemSize) * Math.abs(scale);
  // A single float has 24 bits; means of four values need two more than the values.
  const isFine = greatest * 2 ** -24 <= Math.abs(scale) / 4;
  return parseDataType(isShort && isFine ? "<f4" : "<f8");
}

/** Finds an item that means a missing value, as little as possible other than what the array has; null if none does. */
function missingItemOf(
  dataType: DataType,
  packing: Packing,
  fillItem: Uint8Array | null,
  { _FillValue, missing_value }: JsonObject,
): Uint8Array | null {
  const named = [_FillValue, missing_value].flatMap(listOf);
  const items = [fillItem, ...named.map((value) => encoded(value, dataType, packing))];
  const found = items.find((item) => item != null && isMissingItem(item, dataType, packing));
  return found ?? (dataType.kind === "f" ? encodeFillItem("NaN", dataType) : null);
}

function listOf(value: JsonValue | undefined): readonly (JsonValue | undefined)[] {
  return isJsonArray(value) ? value : [value];
}

function encoded(
  value: JsonValue | undefined,
  dataType: DataType,
  { isUnsigned }: Packing,
): Uint8Array | undefined {
  if (value === undefined) return undefined;
  const bits = 8 * dataType.itemSize;
  const integer = isUnsigned === undefined ? undefined : toBigInt(value);
  const wrapped = dataType.kind === "i" ? BigInt.asIntN : BigInt.asUintN;
  try {
    return encodeFillItem(integer === undefined ? value : wrapped(bits, integer), dataType);
  } catch {
    // A number that no item can be marks none.
    return undefined;
  }
}

function isMissingItem(item: Uint8Array, dataType: DataType, packing: Packing): boolean {
  const row = new Float64Array(1);
  openRows(item, dataType, packing).read(row, 0, 1);
  return Number.isNaN(row[0]);
}

/** Changed whenever other values are made of the same ones. */
const REVISION = "1";

/** A coarser level of an array. */
export interface LevelRequest {
  readonly name: string;
  /** Without a leading slash: `1/t2m`. */
  readonly path: string;
  /** Cells per axis that become one: 1 or 2. */
  readonly factors: readonly number[];
  readonly method: LevelMethod;
  /** Attributes before those go that means make wrong: packing, missing values. Default: the attributes of the level below. */
  readonly attrs?: JsonObject;
  /**
   * Whether means of integers are integers, packed as they are, as OME-Zarr demands: it has one type for all levels, and no missing
   * values but those that attributes name. Default false.
   */
  readonly keepsType?: boolean;
  /** The last one is a compressor. Default: those of the array below. */
  readonly codecs?: readonly CodecSpec[];
}

/** The dataset that a level belongs to. */
export interface LevelContext {
  /** Name of the dataset and of the place of its data. */
  readonly store: string;
  /** Returns the snapshot that has the array; called when its chunks are read. */
  readonly snapshot: () => DatasetSnapshot;
  /** Opens the reader of an array's chunks: `ChunkService.openReader`. Default: they cannot be read. */
  readonly openReader?: ((snapshot: DatasetSnapshot, array: ServedArray) => ChunkReader) | undefined;
  /** As in `DatasetSnapshot`. */
  readonly immutable: boolean;
  /** As in `SnapshotOptions`. */
  readonly maxChunkBytes?: number | undefined;
  /** As in `OverviewOptions`. */
  readonly portable?: boolean | undefined;
}

/**
 * Makes a coarser level of an array. Its chunks are as long as those of the array below, and made of its stored ones; those of a
 * level that was made here are got from the chunk service.
 * @throws ZpublishError `unsupported`, naming the array, if it has no such values, or its chunks cannot be decoded or made
 */
export function createLevelArray(
  below: ServedArray,
  request: LevelRequest,
  context: LevelContext,
): ServedArray {
  const { name, path, factors, method, keepsType = false } = request;
  const { stored, document, variable } = below;
  const { dataType } = stored;
  assertCanTake(method, dataType, path);
  const packing = packingOf(stored.attrs, keepsType ? null : document.fill_value);
  const values = levelValues(stored, packing, method, keepsType);
  const shape = stored.shape.map((length, axis) => Math.ceil(length / factors[axis]!));
  const chunkShape = shape.map((length, axis) => Math.max(1, Math.min(document.chunks[axis]!, length)));
  const codecs = request.codecs ?? codecsOf(below, values.dataType.itemSize);
  const fields: StoredArray = {
    ...{ name, path, shape, chunkShape, codecs },
    dataType: values.dataType,
    axisOrder: shape.map((_, axis) => axis),
    compressorCount: request.codecs === undefined && document.compressor === null ? 0 : 1,
    fill: values.fill,
    dimNames: variable.dims,
    attrs: values.attributesOf(request.attrs ?? stored.attrs),
    chunks: stored.chunks,
  };
  const options = { encoderRevision, maxChunkBytes: context.maxChunkBytes };
  const planned = createEncodingPlan(fields, {}, options);
  const plan = createComputePlan(
    stored,
    {
      path,
      box: chunkShape.map((length, axis) => length * factors[axis]!),
      compute: {
        ...{ kind: "coarsen", method, factors, packing },
        from: dataType,
        to: values.dataType,
        missingItem: values.missingItem,
        fillItem: values.fill.item,
        revision: REVISION,
      },
      encode: createSteps(fields, codecs, chunkShape, planned.plan.maxFilledByteLength),
      absentIsAbsent: values.absentIsAbsent,
    },
    options,
  );
  const chunks = servedChunksOf({ path, below: stored.chunks, plan }, context, () => level);
  const planPortable: PlanWithCodecs = (array, { compressor }) => {
    if (array.dataType.kind === "O") throw unservable(array, "coarser texts have a fixed length");
    return createLevelArray(below, { ...request, codecs: [compressor!] }, { ...context, portable: false });
  };
  const portable = context.portable ? planPortable : undefined;
  const made = { ...planned, plan };
  const served = createServedArray({ ...fields, chunks }, made, variable.dims, false, portable);
  const level: ServedArray = Object.freeze({ ...served, isOfOverviews: true });
  return level;
}

/**
 * Describes chunks that are served of an array as stored ones, of which others are made: those of a level, or of another encoding.
 * @param made Path of the array, what its chunks are made of, and how.
 * @param array Returns the array.
 */
export function servedChunksOf(
  made: { readonly path: string; readonly below: ChunkSource; readonly plan: EncodingPlan },
  { store, immutable, openReader = noReader, snapshot }: LevelContext,
  array: () => ServedArray,
): ServedChunks {
  const { path, below, plan } = made;
  let reader: ChunkReader | undefined;
  return {
    kind: "served",
    ...{ store, path },
    plan: below.kind === "served" ? `${below.plan}.${plan.id}` : plan.id,
    ...(!immutable && { joined: growthOf(below, plan) }),
    level: below.kind === "served" ? below.level + 1 : 1,
    openReader() {
      reader ??= openReader(snapshot(), array());
      return reader;
    },
  };
}

function noReader(): never {
  throw new ZpublishError("internal", "expected a server to read chunks that it makes itself");
}

function assertCanTake(method: LevelMethod, dataType: DataType, path: string): void {
  if (dataType.kind !== "O" && (method === "nearest" || isNumeric(dataType))) return;
  throw unservable({ path }, `expected numbers to take the ${method} of, received ${dataType.numpyName}`);
}

/** Returns the codecs of a level: codecs of the array below that suit other values and can be encoded. */
function codecsOf({ document: { compressor, filters } }: ServedArray, itemSize: number): CodecSpec[] {
  const shuffle = filters?.find(({ id }) => id === "shuffle");
  const codecs: CodecSpec[] = shuffle === undefined ? [] : [{ id: "shuffle", elementsize: itemSize }];
  if (compressor !== null) codecs.push(compressorOf(compressor));
  return codecs;
}

function compressorOf(codec: CodecSpec): CodecSpec {
  const encoded = encodedCodec(codec);
  const isAskable = codecRule(encoded.id)?.askedAs === "compressor";
  return isAskable && encodeProblem(completeCodec(encoded)) === undefined ? encoded : DEFAULT_COMPRESSOR;
}

/** Cells along an axis of the coarsest level at most, if chunks are longer: as many as a screen shows. */
const MAX_CELLS = 1_024;
/** Most levels, as of the option. */
export const MAX_LEVELS = 16;

/**
 * Counts the coarser levels of a dataset.
 * @param asked `auto` for as many as it takes until the planes of all data variables fit one chunk.
 * @param horizontal Dimensions that are coarsened. There is no level in which nothing would get coarser.
 */
export function levelCount(tree: DataTree, horizontal: ReadonlySet<string>, asked: number | "auto"): number {
  const axes = horizontalAxes(tree, horizontal);
  const most = Math.max(0, ...axes.map(({ length }) => levelsUntil(length, 1)));
  const wanted =
    asked === "auto" ? Math.max(0, ...axes.map(({ length, end }) => levelsUntil(length, end))) : asked;
  return Math.min(wanted, most, MAX_LEVELS);
}

/** Returns the length of an axis in a level: half the length in the level below, rounded up. */
export function lengthAt(length: number, level: number): number {
  return Math.ceil(length / 2 ** level);
}

function levelsUntil(length: number, end: number): number {
  let level = 0;
  while (lengthAt(length, level) > end) level++;
  return level;
}

/** Lists lengths of horizontal axes, and the cells at which a level is coarse enough: of planes, of other arrays if there are none. */
function horizontalAxes(tree: DataTree, horizontal: ReadonlySet<string>) {
  const planes: { length: number; end: number }[] = [];
  const others: { length: number; end: number }[] = [];
  for (const { variables, coordinateNames } of tree.groups.values()) {
    for (const variable of variables.values()) {
      const axes = axesOf(variable, horizontal);
      const isPlane = axes.length >= 2 && !coordinateNames.has(variable.name);
      (isPlane ? planes : others).push(...axes);
    }
  }
  return planes.length > 0 ? planes : others;
}

function axesOf({ dims, shape, chunkShape }: Variable, horizontal: ReadonlySet<string>) {
  return dims.flatMap((dim, axis) =>
    horizontal.has(dim)
      ? [{ length: shape[axis]!, end: Math.max(1, Math.min(chunkShape[axis]!, MAX_CELLS)) }]
      : [],
  );
}

/** How a variable comes to a coarser level: as it is, coarsened, or not at all. */
export type LevelRule =
  | { readonly kind: "same" }
  | {
      readonly kind: "coarsen";
      readonly method: LevelMethod;
      /** Cells per axis that become one. */
      readonly factors: readonly number[];
    }
  | { readonly kind: "none"; readonly reason: string };

const SAME: LevelRule = Object.freeze({ kind: "same" });

/**
 * Returns how a variable comes to coarser levels. Coordinates are means of their cells. Categories and truth values are never averaged;
 * what has no mean (texts, times, structures, complex numbers) takes the first cell. Bounds of cells become those of coarser cells if they
 * are pairs, else they are left out.
 * @param horizontal Dimensions that are coarsened.
 */
export function levelRule(
  group: Group,
  variable: Variable,
  horizontal: ReadonlySet<string>,
  method: CoarsenMethod,
): LevelRule {
  const { dims, dataType, attrs, name, shape, chunkShape } = variable;
  const factors = dims.map((dim) => (horizontal.has(dim) ? 2 : 1));
  if (!factors.includes(2)) return SAME;
  const { kind } = dataType;
  if (kind === "O") return { kind: "none", reason: "items of no fixed size cannot be coarsened" };
  if (boundsOf(group).has(name)) {
    const isPairs = factors.length === 2 && factors[0] === 2 && shape[1] === 2 && chunkShape[1] === 2;
    if (isPairs && isNumeric(dataType)) return { kind: "coarsen", method: "bounds", factors };
    return { kind: "none", reason: "expected two bounds per cell of one axis, in one chunk" };
  }
  const asked = group.coordinateNames.has(name) ? "mean" : method;
  if (kind === "b" || hasFlags(attrs))
    return { kind: "coarsen", method: asked === "mean" ? "mode" : asked, factors };
  return { kind: "coarsen", method: isNumeric(dataType) ? asked : "nearest", factors };
}

/** Attributes that say where the cells of the dataset are: of GDAL and rioxarray, and of the convention `spatial:`. */
const PLACES: ReadonlySet<string> = new Set(["GeoTransform", "spatial:transform", "spatial:shape"]);

/**
 * Returns the attributes of a coarser level of a group, or of a variable that stays the same: without those that say where the cells of
 * the dataset are, which win over coordinates. The same object if there are none.
 */
export function withoutPlaces(attrs: JsonObject): JsonObject {
  const entries = Object.entries(attrs);
  const kept = entries.filter(([key]) => !PLACES.has(key));
  return kept.length === entries.length ? attrs : Object.fromEntries(kept);
}

/**
 * Returns the attributes of a variable that is coarsened: as {@link withoutPlaces}, and without the names of variables that are left
 * out. xarray takes no name of a list of coordinates for one if another is missing.
 */
export function levelAttributes(attrs: JsonObject, isLeftOut: (name: string) => boolean): JsonObject {
  const { bounds, coordinates, ...rest } = withoutPlaces(attrs);
  const names = typeof coordinates === "string" ? coordinates.split(/\s+/) : [];
  const hasBounds = bounds !== undefined && !(typeof bounds === "string" && isLeftOut(bounds));
  return {
    ...rest,
    ...(coordinates !== undefined && {
      coordinates: names.some(isLeftOut) ? names.filter((name) => !isLeftOut(name)).join(" ") : coordinates,
    }),
    ...(hasBounds && { bounds }),
  };
}

const boundsOfGroups = new WeakMap<Group, ReadonlySet<string>>();

/** Returns the names of the variables of a group that hold bounds of coordinates (CF section 7.1). */
function boundsOf(group: Group): ReadonlySet<string> {
  let names = boundsOfGroups.get(group);
  if (names === undefined) {
    names = new Set(
      [...group.variables.values()]
        .map(({ attrs }) => attrs.bounds)
        .filter((name) => typeof name === "string"),
    );
    boundsOfGroups.set(group, names);
  }
  return names;
}

/**
 * Creates the tree of overviews: a root without arrays, and below it the whole tree of the dataset once per level. Groups and variables
 * are made when they are first asked for.
 * @param arrays All arrays by path: `1/a/b/t2m`.
 */
export function createLevelTree(
  { dataset, count, horizontal }: OverviewLevels,
  arrays: ReadonlyMap<string, ServedArray>,
): DataTree {
  const names = Array.from({ length: count + 1 }, (_, level) => String(level));
  const root: Group = Object.freeze({
    path: "/",
    name: "",
    attrs: {},
    variables: new Map(),
    coordinateNames: new Set<string>(),
    dims: new Map(),
    // As a source sorts them.
    childNames: [...names].sort(),
  });

  function groupAt(level: string, group: Group): Group {
    const path = group.path === "/" ? `/${level}` : `/${level}${group.path}`;
    const variableAt = (name: string): Variable | undefined => {
      const own = group.variables.has(name) ? arrays.get(`${path.slice(1)}/${name}`) : undefined;
      return own && Object.freeze({ ...own.variable, path: `${path.slice(1)}/${name}` });
    };
    return Object.freeze({
      path,
      name: group.path === "/" ? level : group.name,
      attrs: level === "0" ? group.attrs : withoutPlaces(group.attrs),
      variables: new LazyMap(() => group.variables.keys(), variableAt),
      coordinateNames: group.coordinateNames,
      dims: new Map(
        [...group.dims].map(([dim, length]) => [
          dim,
          horizontal.has(dim) ? lengthAt(length, Number(level)) : length,
        ]),
      ),
      childNames: group.childNames,
    });
  }

  function* paths(): Iterable<string> {
    yield "/";
    for (const level of root.childNames)
      for (const path of dataset.tree.groups.keys()) yield path === "/" ? `/${level}` : `/${level}${path}`;
  }

  function make(path: string): Group | undefined {
    if (path === "/") return root;
    const match = /^\/([^/]+)(\/.+)?$/.exec(path);
    const level = match?.[1] ?? "";
    const group = names.includes(level) ? dataset.tree.groups.get(match?.[2] ?? "/") : undefined;
    return group && groupAt(level, group);
  }

  return Object.freeze({ root, groups: new LazyMap(paths, make) });
}
