import { NC, type NcAttribute, netcdfAttributes, pythonFloatText, shortestFloat } from "../../plugin-api.js";
import { type DapDataset, dapName } from "./dap-dataset.js";
import type { DapSlice, DapVariable } from "./dap-values.js";

/** Types of DAP2 by the codes of netCDF. */
const TYPES = ",,String,Int16,Int32,Float32,Float64,Byte,UInt16,UInt32".split(",");

/** Writes the DDS of pieces of variables: their types, dimensions and lengths. */
export function* writeDds(slices: Iterable<DapSlice>, fileName: string): Generator<string> {
  yield "Dataset {\n";
  for (const { variable, shape } of slices) yield `    ${declarationOf(variable, shape)};\n`;
  yield `} ${dapName(fileName).replaceAll("%2E", ".")};\n`;
}

/** Returns `Float32 t2m[time = 10][lat = 7]`. */
export function declarationOf({ name, dims, type }: DapVariable, shape: readonly number[]): string {
  const lengths = shape.map((length, at) => `[${dims[at]} = ${length}]`);
  return `${TYPES[type.code]} ${name}${lengths.join("")}`;
}

/** Writes the DAS: the attributes of all variables, and those of groups, which have the group's path before their names. */
export function* writeDas({ snapshot, byName, leftOut, unlimited }: DapDataset): Generator<string> {
  yield "Attributes {\n";
  for (const variable of byName.values()) {
    yield `    ${variable.name} {\n`;
    yield* attributesOf(variable).map(attributeLine);
    const { text, dims } = variable;
    if (text !== undefined) {
      // netCDF-C makes character arrays of texts, of 64 characters unless it knows better.
      yield `        Int32 DODS.strlen ${text.maxBytes};\n`;
      const dim = text.isOfCharacters ? dims.at(-1) : `string${text.maxBytes}`;
      yield `        String DODS.dimName "${dim}";\n`;
    }
    yield "    }\n";
  }
  yield "    NC_GLOBAL {\n";
  for (const { path, attrs } of snapshot.tree.groups.values())
    for (const attribute of netcdfAttributes(attrs, undefined))
      yield attributeLine({
        ...attribute,
        name: `${path}/${attribute.name}`.replace(/^\/+/, "").replaceAll("/", "_"),
      });
  yield "    }\n    DODS_EXTRA {\n";
  if (unlimited !== undefined) yield textLine("Unlimited_Dimension", [unlimited]);
  if (leftOut.size > 0)
    yield textLine(
      "Left_Out",
      Array.from(leftOut, (each) => each.join(": ")),
    );
  yield "    }\n}\n";
}

/**
 * Returns the attributes of a variable in the types that DAP2 gives it. netCDF-C takes unsigned integers for signed ones, and `_Unsigned`
 * tells its users.
 */
function attributesOf({ attrs, type, text, dataType }: DapVariable): NcAttribute[] {
  const isUnsigned = [NC.ubyte, NC.ushort, NC.uint].includes(type) && dataType.kind !== "b";
  const isSignedByte = type === NC.ubyte && dataType.kind === "i";
  const marked = isUnsigned ? { _Unsigned: "true", ...attrs } : attrs;
  return netcdfAttributes(marked, text === undefined ? (isSignedByte ? NC.byte : type) : undefined)
    .map((each) => (isSignedByte && each.type === NC.byte ? unsigned(each) : each))
    .filter((each) => each.name !== "_FillValue" || each.type === type);
}

function unsigned({ name, values }: NcAttribute): NcAttribute {
  const bytes = [...values].map((each) => BigInt.asUintN(8, BigInt(each)));
  return { name, type: NC.ubyte, values: bytes };
}

function attributeLine({ name, type, values }: NcAttribute): string {
  if (typeof values === "string") return textLine(name, [values]);
  const isLong = type === NC.int64 || type === NC.uint64;
  if (isLong && values.some((each) => BigInt(Number(each)) !== each))
    return textLine(name, values.map(String));
  const [own, numbers] = isLong ? [NC.double, values.map(Number)] : [type, values];
  return `        ${TYPES[own.code]} ${dapName(name)} ${numbers.map((each) => attributeNumber(each, own)).join(", ")};\n`;
}

function textLine(name: string, texts: readonly string[]): string {
  const quoted = texts.map((text) => `"${text.replace(/["\\]/g, "\\$&")}"`);
  return `        String ${dapName(name)} ${quoted.join(", ")};\n`;
}

/** Writes a number of an attribute. Parsers know `inf` and `nan`. */
export function attributeNumber(value: number | bigint, type: NcAttribute["type"]): string {
  if (typeof value === "bigint") return String(value);
  if (!Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  return pythonFloatText(type === NC.float ? shortestFloat(value, 4) : value);
}
