import {
  type ArrayView,
  createDimNames,
  type DatasetView,
  dimOf,
  type ExportedVariable,
  elementCount,
  type JsonObject,
  NC,
  type NcType,
  netcdfStorage,
  renamedReferences,
  type Values,
  workThrough,
  ZpublishError,
} from "../../plugin-api.js";
import { cutVariable } from "./constraint.js";
import { type DapVariable, exactFloats, readTexts, type TextForm } from "./dap-values.js";

/** A dataset as clients of DAP2, who know no groups, and of DAP4 see it. */
export interface DapDataset {
  readonly snapshot: DatasetView;
  /** Variables of DAP2 by their names. */
  readonly byName: ReadonlyMap<string, DapVariable>;
  /** Variables of DAP4 by their paths. */
  readonly byPath: ReadonlyMap<string, DapVariable>;
  /** Paths that DAP2 does not have, with the reason. Those in {@link byPath} are left out of DAP2 alone. */
  readonly leftOut: ReadonlyMap<string, string>;
  /** The dimension that may grow, by its name in DAP2: the first one of all variables that have it. */
  readonly unlimited: string | undefined;
}

/** DAP2 has no signed byte and no integers of 64 bits: they are the next wider type that holds their values. */
const DAP2_TYPES: ReadonlyMap<NcType, NcType> = new Map([
  [NC.byte, NC.short],
  [NC.int64, NC.double],
  [NC.uint64, NC.double],
]);

/** Texts of a variable that are read before anything is asked for: for the longest of them. */
const MAX_TEXTS = 2 ** 20;
/**
 * Integers of a variable that are read to see whether `Float64` holds them. netCDF-C asks for all variables of up to 4,096 values in one
 * request, which a single other integer would fail.
 */
const MAX_INTEGERS = 2 ** 16;
/** Variables that are read at a time. */
const READ_AT_ONCE = 4;

/** Describes a dataset. Reads texts, and integers of 64 bits, unless they are many. @throws what reading values throws */
export async function describeForDap(snapshot: DatasetView, values: Values): Promise<DapDataset> {
  const byName = new Map<string, DapVariable>();
  const byPath = new Map<string, DapVariable>();
  const leftOut = new Map<string, string>();
  const names = namesOf(snapshot);
  const dimName = createDimNames([]);
  await workThrough(snapshot.arrays.values(), READ_AT_ONCE, async (array) => {
    const { path } = array.variable;
    const name = names.get(path)!;
    const dims = array.variable.dims.map((_, at) => {
      const { owner, ...dim } = dimOf(snapshot, array.variable, at);
      const named = owner && { ...owner, path: names.get(owner.path)! };
      return dimName({ ...dim, name: dapName(dim.name), owner: named });
    });
    try {
      const variable = describeVariable(array, values, { name, dims });
      byPath.set(path, variable.text?.isOfCharacters ? { ...variable, text: undefined } : variable);
      const attrs = renamedReferences(variable.attrs, (word) => names.get(path.replace(/[^/]*$/, word)));
      // Its place is the one of the array, whenever it has been read.
      byName.set(name, variable);
      byName.set(name, await describeForDap2(snapshot, { ...variable, attrs }, values));
    } catch (error) {
      if (!isOfData(error)) throw error;
      byName.delete(name);
      leftOut.set(path, error.message);
    }
  });
  const unlimited = unlimitedOf(snapshot, [...byName.values()]);
  return { snapshot, byName, byPath, leftOut: new Map([...leftOut].toSorted()), unlimited };
}

/** Returns the names of DAP2 by paths, no two alike. Without percent signs of their own, they are found however often they are encoded. */
function namesOf({ arrays }: DatasetView): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const path of arrays.keys()) {
    let name = dapName(path.replace(/[/%]/g, "_"));
    while (paths.has(name)) name += "_";
    paths.set(name, path);
  }
  return new Map(Array.from(paths, ([name, path]) => [path, name]));
}

/**
 * Percent-encodes a name for DAP2. Besides letters and digits, parsers of all clients take `_` and `-` alone. netCDF-C, which does not
 * decode names, opens no dataset with one that begins with a percent sign.
 */
export function dapName(name: string): string {
  const escaped = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(name.replace(/\p{Surrogate}/gu, "\ufffd"))
    .replace(/[.!~*'()]/g, escaped)
    .replace(/^%/, "_%");
}

/** Whether an error is about the values of one variable, which stay as they are. */
function isOfData(error: unknown): error is ZpublishError {
  const codes = ["invalid-query", "unsupported", "corrupt-chunk", "codec-failed"];
  return error instanceof ZpublishError && codes.includes(error.code);
}

/** Describes a variable as DAP4 has it. @throws ZpublishError `unsupported` if its type or its chunks are */
function describeVariable(
  array: ArrayView,
  values: Values,
  named: Pick<DapVariable, "name" | "dims">,
): DapVariable {
  const { dataType, shape, attrs: stored } = array.variable;
  const variable = { ...named, shape, dataType, isCoordinate: false };
  const storage = { ...variable, attrs: stored, source: { array, selection: [], kept: [] } };
  const { type, more } = storageOf(storage);
  // Refused if the array can be passed through but not decoded.
  values.dataType(array, false);
  const text = type === NC.char ? textFormOf(array) : undefined;
  const { _FillValue: own, ...others } = stored;
  const fill = array.document.fill_value ?? own ?? null;
  const isFilled = fill !== null && "biuf".includes(dataType.kind);
  const attrs: JsonObject = { ...others, ...(isFilled ? { _FillValue: fill } : {}), ...more };
  return { ...variable, array, attrs, text, type: dataType.kind === "b" ? NC.ubyte : type };
}

/** @throws ZpublishError `unsupported` if netCDF has no such type, and so DAP has none */
function storageOf(variable: ExportedVariable): ReturnType<typeof netcdfStorage> {
  try {
    return netcdfStorage(variable, 1);
  } catch (cause) {
    throw new ZpublishError("unsupported", `DAP has no type for ${variable.dataType.numpyName}`, { cause });
  }
}

/** @throws ZpublishError `unsupported` if values are objects other than texts */
function textFormOf({ variable: { dataType, shape, dims }, document: { filters } }: ArrayView): TextForm {
  const { kind, itemSize } = dataType;
  const isOfCharacters = dataType.numpyName === "bytes8" && dims.length > 0;
  const ids = filters?.map(({ id }) => id) ?? [];
  if (kind === "O" && !ids.some((id) => id.startsWith("vlen-") && id !== "vlen-array"))
    throw new ZpublishError("unsupported", "DAP has no type for objects other than texts");
  const encoding = ids.includes("vlen-bytes") ? "latin1" : "utf8";
  const itemBytes = kind !== "S" ? undefined : isOfCharacters ? shape.at(-1)! : itemSize;
  const maxBytes = kind === "O" ? undefined : Math.max(1, itemBytes ?? itemSize);
  return { isOfCharacters, encoding, itemBytes, maxBytes };
}

/**
 * Describes a variable as DAP2 has it. Longer ones of 64-bit integers are `Float64` without being read: a request for one that `Float64` does
 * not hold is refused, or broken off if the answer has begun.
 * @throws ZpublishError `unsupported`, or what {@link exactFloats} throws
 */
async function describeForDap2(
  snapshot: DatasetView,
  variable: DapVariable,
  values: Values,
): Promise<DapVariable> {
  const { array, attrs, text, type } = variable;
  const count = elementCount(variable.shape);
  // netCDF-C takes dimensions of length 0 for unlimited ones, and a constraint cannot say them.
  if (count === 0) throw new ZpublishError("unsupported", "DAP2 has no variables without values; DAP4 has");
  if (text !== undefined && text.maxBytes === undefined && count > MAX_TEXTS)
    throw new ZpublishError(
      "unsupported",
      `DAP2 needs the longest of its texts, and ${count} are too many to read for it; DAP4 has them`,
    );
  const own = DAP2_TYPES.get(type) ?? type;
  const whole = cutVariable(variable);
  if (own === NC.double && type !== own && count <= MAX_INTEGERS)
    for await (const block of values.stream(snapshot, array, whole.axes)) exactFloats(block);
  let maxBytes = text?.maxBytes ?? 1;
  if (text !== undefined && text.maxBytes === undefined)
    for await (const texts of readTexts({ snapshot, values }, whole))
      for (const { length } of texts) maxBytes = Math.max(maxBytes, length);
  return {
    ...variable,
    // A byte that is marked as unsigned is the byte of DAP2.
    type: type === NC.byte && attrs._Unsigned === "true" ? NC.ubyte : own,
    shape: text?.isOfCharacters ? variable.shape.slice(0, -1) : variable.shape,
    text: text && { ...text, maxBytes },
  };
}

function unlimitedOf({ unlimited = [] }: DatasetView, variables: readonly DapVariable[]): string | undefined {
  const isUnlimited = ({ array }: DapVariable, at: number) => unlimited.includes(array.variable.dims[at]!);
  const first = variables.find((each) => each.dims.length > 0 && isUnlimited(each, 0))?.dims[0];
  return variables.every(({ dims }) => dims.lastIndexOf(first ?? "") <= 0) ? first : undefined;
}
