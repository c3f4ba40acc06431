import {
  dimOf,
  type Group,
  groupPathOf,
  NC,
  type NcAttribute,
  netcdfAttributes,
  xmlText,
} from "../../plugin-api.js";
import type { DapDataset } from "./dap-dataset.js";
import type { DapSlice, DapVariable } from "./dap-values.js";
import { attributeNumber } from "./dap2-documents.js";

/** Lengths of the dimensions that a group declares, by name. */
type Declared = Map<string, number>;

/**
 * Writes the DMR of pieces of variables: groups, dimensions, types and attributes. The dimensions of a piece that is not whole have lengths
 * and no names.
 */
export function* writeDmr(
  dataset: DapDataset,
  slices: readonly DapSlice[],
  fileName: string,
): Generator<string> {
  const { snapshot } = dataset;
  const declared = declareDims(dataset, slices);
  const slicesOf = new Map<string, DapSlice[]>();
  for (const slice of slices) {
    const path = groupPathOf(slice.variable.array.variable);
    const ofGroup = slicesOf.get(path) ?? [];
    slicesOf.set(path, ofGroup);
    ofGroup.push(slice);
  }
  function* writeGroup(group: Group, indent: string): Generator<string> {
    for (const [name, length] of declared.get(group.path) ?? []) {
      const unlimited = snapshot.unlimited?.includes(name) ? ' _edu.ucar.isunlimited="1"' : "";
      yield `${indent}<Dimension name="${xmlText(name)}" size="${length}"${unlimited}/>\n`;
    }
    for (const slice of slicesOf.get(group.path) ?? [])
      yield* writeVariable(dataset, slice, declared, indent);
    yield* writeAttributes(netcdfAttributes(group.attrs, undefined), indent);
    for (const name of group.childNames) {
      const child = snapshot.tree.groups.get(`${group.path === "/" ? "" : group.path}/${name}`)!;
      yield `${indent}<Group name="${xmlText(name)}">\n`;
      yield* writeGroup(child, `${indent}  `);
      yield `${indent}</Group>\n`;
    }
  }
  yield '<?xml version="1.0" encoding="UTF-8"?>\n';
  yield `<Dataset xmlns="http://xml.opendap.org/ns/DAP/4.0#" dapVersion="4.0" dmrVersion="1.0" name="${xmlText(fileName)}">\n`;
  yield* writeGroup(snapshot.tree.root, "  ");
  const leftOut = [...dataset.leftOut].filter(([path]) => !dataset.byPath.has(path));
  if (leftOut.length > 0) {
    const values = leftOut.map((each) => each.join(": "));
    yield* writeAttributes([{ name: "Left_Out", type: NC.char, values }], "  ");
  }
  yield "</Dataset>\n";
}

/** Sorts slices as a DMR has them: those of a group before those of the groups within. */
export function inDmrOrder(slices: readonly DapSlice[]): DapSlice[] {
  const keyOf = ({ variable }: DapSlice) => groupPathOf(variable.array.variable).replaceAll("/", "\0");
  return slices.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : +(keyOf(one) > keyOf(other))));
}

/** Returns the group that declares a dimension of a variable, where its labels are or the variable itself. */
function homeOf({ snapshot }: DapDataset, { array }: DapVariable, at: number): string {
  const { owner } = dimOf(snapshot, array.variable, at);
  return groupPathOf(owner ?? array.variable);
}

function declareDims(dataset: DapDataset, slices: readonly DapSlice[]): ReadonlyMap<string, Declared> {
  const declared = new Map<string, Declared>();
  for (const { variable, isWhole } of slices)
    for (const [at, name] of (isWhole ? variable.array.variable.dims : []).entries()) {
      const home = homeOf(dataset, variable, at);
      const ofGroup = declared.get(home) ?? new Map();
      declared.set(home, ofGroup);
      // One of another length has no name where it is used.
      if (!ofGroup.has(name)) ofGroup.set(name, variable.array.variable.shape[at]!);
    }
  return declared;
}

function* writeVariable(
  dataset: DapDataset,
  { variable, shape, isWhole }: DapSlice,
  declared: ReadonlyMap<string, Declared>,
  indent: string,
): Generator<string> {
  const { array, attrs, type, text } = variable;
  const { name, dims } = array.variable;
  const tag = type === NC.char && text === undefined ? "Char" : TYPES[type.code];
  yield `${indent}<${tag} name="${xmlText(name)}">\n`;
  const homes = dims.map((_, at) => homeOf(dataset, variable, at));
  const hasNames = isWhole && dims.every((dim, at) => declared.get(homes[at]!)!.get(dim) === shape[at]);
  for (const [at, length] of shape.entries()) {
    const path = `${homes[at] === "/" ? "" : homes[at]}/${dims[at]}`;
    yield `${indent}  <Dim ${hasNames ? `name="${xmlText(path)}"` : `size="${length}"`}/>\n`;
  }
  const attributes = netcdfAttributes(attrs, type === NC.char ? undefined : type);
  const isFitting = (each: NcAttribute) => each.name !== "_FillValue" || each.type === type;
  yield* writeAttributes(attributes.filter(isFitting), `${indent}  `);
  yield `${indent}</${tag}>\n`;
}

/** Types of DAP4 by the codes of netCDF. */
const TYPES = ", Int8, String, Int16, Int32, Float32, Float64, UInt8, UInt16, UInt32, Int64, UInt64".split(
  ", ",
);

/** An attribute of numbers or texts. */
interface DmrAttribute extends Omit<NcAttribute, "values"> {
  readonly values: string | readonly (string | number | bigint)[];
}

function* writeAttributes(attributes: readonly DmrAttribute[], indent: string): Generator<string> {
  for (const { name, type, values } of attributes) {
    yield `${indent}<Attribute name="${xmlText(name)}" type="${TYPES[type.code]}">\n`;
    for (const each of typeof values === "string" ? [values] : values)
      yield `${indent}  <Value>${typeof each === "string" ? xmlText(each).replaceAll("&quot;", '"') : attributeNumber(each, type)}</Value>\n`;
    yield `${indent}</Attribute>\n`;
  }
}
