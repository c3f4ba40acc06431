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
  ZpublishError,
} from "../../plugin-api.js";
import { type DapVariable, exactFloats, readTexts, type TextForm } from "./dap-values.js";

/** A dataset as clients of DAP2, who know no groups, and of DAP4 see it. */
export interface DapDataset {
  readonly snapshot: DatasetView;
  /** Variables of DAP2 by their names, as they are and percent-encoded. */
  readonly byName: ReadonlyMap<string, DapVariable>;
  /** Variables of DAP4 by their paths. */
  readonly byPath: ReadonlyMap<string, DapVariable>;
  /** Paths that DAP2 does not have, with the reason. */
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

/** Items of a variable that are read before anything is asked for: for its longest text, or to see whether `Float64` holds them. */
const MAX_LOOKED_AT = 2 ** 20;

/** Describes a dataset. Reads texts, and integers of 64 bits, unless they are many. @throws what reading values throws */
export async function describeForDap(snapshot: DatasetView, values: Values): Promise<DapDataset> {
  const byName = new Map<string, DapVariable>();
  const byPath = new Map<string, DapVariable>();
  const leftOut = new Map<string, string>();
  const names = namesOf(snapshot);
  const dimName = createDimNames([]);
  for (const array of snapshot.arrays.values()) {
    const { path, shape } = array.variable;
    const name = names.get(path)!;
    const dims = array.variable.dims.map((_, at) => dimName(dimOf(snapshot, array.variable, at)));
    try {
      const variable = await describeVariable(snapshot, array, values, { name, dims });
      const { text, type } = variable;
      byPath.set(path, text?.isOfCharacters ? { ...variable, text: undefined } : variable);
      if (elementCount(shape) === 0)
        // netCDF-C takes dimensions of length 0 for unlimited ones, and a constraint cannot say them.
        throw new ZpublishError("unsupported", "DAP2 has no empty variables, DAP4 has");
      if (DAP2_TYPES.get(type) === NC.double) await assertExact(snapshot, array, values);
      // A byte that is marked as unsigned is the byte of DAP2.
      const isUnsigned = type === NC.byte && variable.attrs._Unsigned === "true";
      const dap2: DapVariable = {
        ...{ ...variable, type: isUnsigned ? NC.ubyte : (DAP2_TYPES.get(type) ?? type) },
        attrs: renamedReferences(variable.attrs, (word) => names.get(path.replace(/[^/]*$/, word))),
        shape: text?.isOfCharacters ? shape.slice(0, -1) : shape,
      };
      byName.set(name, dap2).set(dapName(name), dap2);
    } catch (error) {
      if (!isOfData(error)) throw error;
      leftOut.set(path, error.message);
    }
  }
  return { snapshot, byName, byPath, leftOut, unlimited: unlimitedOf(snapshot, [...byName.values()]) };
}

/** Returns names without slashes by paths, no two alike. */
function namesOf({ arrays }: DatasetView): ReadonlyMap<string, string> {
  const paths = new Map<string, string>();
  for (const path of arrays.keys()) {
    let name = path.replaceAll("/", "_");
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
  return encodeURIComponent(name)
    .replace(/[.!~*'()]/g, escaped)
    .replace(/^%/, "_%");
}

/** Whether an error is about the values of one variable, which stay as they are. */
function isOfData(error: unknown): error is ZpublishError {
  const codes = ["invalid-query", "unsupported", "too-large"];
  return error instanceof ZpublishError && codes.includes(error.code);
}

/** @throws ZpublishError if netCDF has no such type, or if there are too many texts */
async function describeVariable(
  snapshot: DatasetView,
  array: ArrayView,
  values: Values,
  named: Pick<DapVariable, "name" | "dims">,
): Promise<DapVariable> {
  const { dataType, shape, attrs: stored } = array.variable;
  const variable = { ...named, shape, dataType, isCoordinate: false };
  const storage = { ...variable, attrs: stored, source: { array, selection: [], kept: [] } };
  const { type, more } = storageOf(storage);
  // Of no values: refused if the array can be passed through but not decoded.
  if (shape.length > 0)
    await values.read(
      snapshot,
      array,
      shape.map(() => ({ begin: 0, count: 0, step: 1 })),
    );
  const text = type === NC.char ? await measureTexts(snapshot, array, values) : undefined;
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

function wholeOf({ variable: { shape } }: ArrayView) {
  return shape.map((count) => ({ begin: 0, count, step: 1 }));
}

/** Finds the longest text of a variable. @throws ZpublishError `too-large` if there are too many */
async function measureTexts(snapshot: DatasetView, array: ArrayView, values: Values): Promise<TextForm> {
  const { dataType, shape, dims } = array.variable;
  const isOfCharacters = dataType.numpyName === "bytes8" && dims.length > 0;
  const ids = array.document.filters?.map(({ id }) => id) ?? [];
  const encoding = ids.includes("vlen-bytes") ? "latin1" : "utf8";
  const itemBytes = dataType.kind !== "S" ? undefined : isOfCharacters ? shape.at(-1)! : dataType.itemSize;
  const form = { isOfCharacters, encoding, itemBytes, maxBytes: Math.max(1, itemBytes ?? 0) } as const;
  if (itemBytes !== undefined) return form;
  if (elementCount(shape) > MAX_LOOKED_AT)
    throw new ZpublishError("too-large", `Expected at most ${MAX_LOOKED_AT} texts of no fixed length`);
  if (dataType.kind === "O" && !ids.some((id) => id.startsWith("vlen-") && id !== "vlen-array"))
    throw new ZpublishError("unsupported", "Expected texts as objects");
  let maxBytes = 1;
  for (const { length } of await readTexts({ snapshot, values }, array, form, wholeOf(array)))
    maxBytes = Math.max(maxBytes, length);
  return { ...form, maxBytes };
}

/** @throws ZpublishError `invalid-query` if `Float64` cannot hold a value */
async function assertExact(snapshot: DatasetView, array: ArrayView, values: Values): Promise<void> {
  if (elementCount(array.variable.shape) > MAX_LOOKED_AT) return;
  for await (const block of values.stream(snapshot, array, wholeOf(array))) exactFloats(block);
}

function unlimitedOf({ unlimited = [] }: DatasetView, variables: readonly DapVariable[]): string | undefined {
  const isUnlimited = ({ array }: DapVariable, at: number) => unlimited.includes(array.variable.dims[at]!);
  const first = variables.find((each) => each.dims.length > 0 && isUnlimited(each, 0))?.dims[0];
  return variables.every(({ dims }) => dims.lastIndexOf(first ?? "") <= 0) ? first : undefined;
}
