import type {
  Hdf5Attribute,
  Hdf5Dataset,
  Hdf5File,
  Hdf5Group,
  Hdf5Item,
  Hdf5Type,
} from "../../../src/formats/hdf5/hdf5-model.js";

/** h5py has garbage for further values of a filter. */
const H5PY_VALUES = 16;

/** Returns a file as `write_hdf5.py` prints h5py's view of it: by path, groups with two paths under the first only. */
export function viewOf(file: Hdf5File): Record<string, unknown> {
  const paths = new Map<number, string>();
  eachNode(file.root, (node, path) => paths.has(node.address) || paths.set(node.address, path));
  const views: Record<string, unknown> = {};
  eachNode(file.root, (node, path) => {
    const attributes = viewOfAttributes(node.attributes, paths);
    views[path] = "groups" in node ? { group: true, attributes } : { ...viewOfDataset(node), attributes };
  });
  return views;
}

function eachNode(
  group: Hdf5Group,
  visit: (node: Hdf5Group | Hdf5Dataset, path: string) => void,
  path = "/",
): void {
  visit(group, path);
  const below = path === "/" ? path : `${path}/`;
  for (const [name, dataset] of group.datasets) visit(dataset, below + name);
  for (const [name, child] of group.groups) eachNode(child, visit, below + name);
}

function viewOfDataset({ shape, maxShape, type, fill, layout, filters }: Hdf5Dataset) {
  const isPlain = type.kind === "integer" ? type.precision === 8 * type.size : type.kind === "float";
  return {
    shape,
    maxShape,
    type: viewOfType(type),
    fill: isPlain && fill !== null ? Buffer.from(fill).toString("hex") : null,
    layout: layout.kind,
    chunks: layout.kind === "chunked" ? layout.chunkShape : null,
    offset: layout.kind === "contiguous" && shape !== null ? layout.address : null,
    filters: filters.map(({ id, values }) => [id, values.slice(0, H5PY_VALUES)]),
  };
}

function viewOfType(type: Hdf5Type): unknown[] {
  const { kind, size } = type;
  switch (kind) {
    case "integer":
      return [kind, size, type.isSigned, type.byteOrder, type.precision, type.bitOffset];
    case "float":
      return [kind, size, type.byteOrder];
    case "string":
      return [kind, size, type.padding, type.charset];
    case "vlen-string":
      return [kind, size, type.charset];
    case "vlen":
      return [kind, size, viewOfType(type.base)];
    case "enum":
      return [kind, size, viewOfType(type.base), type.members.map(({ name, value }) => [name, `${value}`])];
    case "compound":
      return [kind, size, type.fields.map((field) => [field.name, field.offset, viewOfType(field.type)])];
    case "array":
      return [kind, size, viewOfType(type.base), type.shape];
    default:
      return [kind, size];
  }
}

function viewOfAttributes(
  attributes: ReadonlyMap<string, Hdf5Attribute>,
  paths: ReadonlyMap<number, string>,
) {
  const views = [...attributes].map(([name, { type, shape, items }]) => {
    const found = items?.map((item) => viewOfItem(item, type, paths)) ?? null;
    return [name, { type: viewOfType(type), shape, items: found }];
  });
  return Object.fromEntries(views);
}

function viewOfItem(item: Hdf5Item, type: Hdf5Type, paths: ReadonlyMap<number, string>): unknown {
  if (item instanceof Uint8Array) return `x${Buffer.from(item).toString("hex")}`;
  if (typeof item === "string") return `s${item}`;
  if (typeof item === "bigint") return `${item}`;
  if (typeof item === "number") return type.kind === "float" ? viewOfFloat(item) : `${item}`;
  if ("address" in item) return item.address === null ? "r" : `r${paths.get(item.address)}`;
  if ("fields" in item) {
    const fields = type.kind === "compound" ? type.fields : [];
    const views = [...item.fields].map(([name, value], i) => [
      name,
      viewOfItem(value, fields[i]?.type as Hdf5Type, paths),
    ]);
    return Object.fromEntries(views);
  }
  return item.map((value) => viewOfItem(value, "base" in type ? type.base : type, paths));
}

function viewOfFloat(value: number): string {
  if (Number.isNaN(value)) return "nan";
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return bytes.toString("hex");
}
