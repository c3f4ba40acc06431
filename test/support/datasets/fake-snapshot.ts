import type { DatasetSnapshot, ServedArray } from "../../../src/dataset/dataset.js";
import type { JsonObject } from "../../../src/json/json-value.js";
import type { DataTree, Group, Variable } from "../../../src/model/data-tree.js";
import type { DataType, DataTypeKind } from "../../../src/model/data-type.js";
import type { CodecSpec } from "../../../src/zarr/codec-step.js";
import type { Refusal } from "../../../src/zarr/stored-tree.js";

/** A variable in few fields. */
export interface FakeVariable {
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Default: the whole shape. */
  readonly chunks?: readonly number[];
  /** Default: `float32`. */
  readonly type?: DataType;
  readonly attrs?: JsonObject;
  readonly coordinate?: boolean;
  readonly compressor?: CodecSpec | null;
  readonly filters?: readonly CodecSpec[] | null;
  readonly kind?: "passthrough" | "recompress" | "rechunk";
}

export interface FakeGroup {
  readonly attrs?: JsonObject;
  readonly variables?: Readonly<Record<string, FakeVariable>>;
  readonly groups?: Readonly<Record<string, FakeGroup>>;
}

/** Creates a data type by numpy's kind and size: `fakeType("f", 4)`. */
export function fakeType(kind: DataTypeKind, itemSize: number, byteOrder: "<" | ">" = "<"): DataType {
  const names: Partial<Record<DataTypeKind, string>> = {
    f: "float",
    i: "int",
    u: "uint",
    S: "bytes",
    U: "str",
    M: "datetime",
  };
  const numpyName = kind === "b" ? "bool" : kind === "O" ? "object" : `${names[kind] ?? kind}${itemSize * 8}`;
  const zarr = `${itemSize === 1 ? "|" : byteOrder}${kind}${kind === "U" ? itemSize / 4 : itemSize}`;
  const native = byteOrder === "<" && kind !== "U" && kind !== "S";
  return { kind, itemSize, byteOrder, zarr, numpyName, numpyStr: native ? numpyName : zarr };
}

/** Creates a snapshot whose chunks cannot be read. */
export function fakeSnapshot(
  id: string,
  root: FakeGroup,
  more: Partial<Pick<DatasetSnapshot, "refused" | "immutable" | "cacheControl" | "revision">> = {},
): DatasetSnapshot {
  const groups = new Map<string, Group>();
  const arrays = new Map<string, ServedArray>();
  addGroup("/", "", root, groups, arrays);
  const tree: DataTree = { root: groups.get("/") as Group, groups };
  const refused: readonly Refusal[] = [];
  return {
    id,
    revision: "0123456789abcdef",
    identity: "identity",
    state: "state",
    tree,
    arrays,
    refused,
    withdrawn: new Set(),
    warnings: [],
    cacheControl: "public, max-age=60",
    immutable: false,
    location: "/somewhere",
    ...more,
  };
}

function addGroup(
  path: string,
  name: string,
  fake: FakeGroup,
  groups: Map<string, Group>,
  arrays: Map<string, ServedArray>,
): void {
  const prefix = path === "/" ? "" : `${path.slice(1)}/`;
  const variables = new Map<string, Variable>();
  const coordinateNames = new Set<string>();
  const dims = new Map<string, number>();
  for (const [variableName, fakeVariable] of Object.entries(fake.variables ?? {})) {
    const array = fakeArray(variableName, prefix + variableName, fakeVariable);
    variables.set(variableName, array.variable);
    arrays.set(array.variable.path, array);
    const isIndex = fakeVariable.dims.length === 1 && fakeVariable.dims[0] === variableName;
    if (isIndex || fakeVariable.coordinate) coordinateNames.add(variableName);
    for (const [axis, dim] of fakeVariable.dims.entries()) dims.set(dim, fakeVariable.shape[axis] as number);
  }
  const childNames = Object.keys(fake.groups ?? {}).sort();
  groups.set(path, { path, name, attrs: fake.attrs ?? {}, variables, coordinateNames, dims, childNames });
  for (const childName of childNames) {
    const child = fake.groups?.[childName] as FakeGroup;
    addGroup(`${path === "/" ? "" : path}/${childName}`, childName, child, groups, arrays);
  }
}

function fakeArray(name: string, path: string, fake: FakeVariable): ServedArray {
  const { dims, shape, attrs = {}, compressor = null, filters = null, kind = "passthrough" } = fake;
  const dataType = fake.type ?? fakeType("f", 4);
  const chunkShape = fake.chunks ?? shape;
  const variable: Variable = { name, path, dims, shape, chunkShape, dataType, attrs };
  const axisOrder = shape.map((_, axis) => axis);
  const layout = {
    chunkShape,
    gridShape: shape.map((length, axis) => Math.ceil(length / (chunkShape[axis] as number))),
    axisOrder,
  };
  const chunks = {
    kind: "files",
    directory: "/somewhere",
    keyEncoding: { name: "v2", separator: "." },
  } as const;
  return {
    variable,
    v3Problem: "not described",
    describeV3() {
      throw new Error("not described");
    },
    replacedCname: undefined,
    digest: "digest",
    document: {
      chunks: chunkShape,
      compressor,
      dimension_separator: ".",
      dtype: dataType.zarr,
      fill_value: dataType.kind === "f" ? "NaN" : 0,
      filters,
      order: "C",
      shape,
      zarr_format: 2,
    },
    zattrs: { ...attrs, _ARRAY_DIMENSIONS: dims },
    plan: {
      kind,
      id: "plan",
      path,
      shape,
      itemSize: dataType.itemSize,
      fillItem: null,
      absentIsAbsent: true,
      maxFilledByteLength: 2 ** 20,
      source: chunks,
      stored: layout,
      served: layout,
      decode: [],
      encode: [],
      encodeAll: [],
      storedByteLength: null,
    },
    stored: {
      name,
      path,
      shape,
      chunkShape,
      dataType,
      axisOrder,
      codecs: [],
      compressorCount: 0,
      fill: { served: 0, item: null, absentIsServed: false },
      dimNames: dims,
      attrs,
      chunks,
    },
  };
}
