import { wrongParameter } from "../http/query.js";
import { elementCount } from "../model/data-tree.js";
import {
  bytesOfTexts,
  createFileBody,
  type DatasetWriter,
  type FileBody,
  type OutputVariable,
  outputOf,
} from "./file-body.js";

/** Writes the one data variable of a dataset, or its one coordinate if it has none. */
export const writeNpy: DatasetWriter = async (dataset, values, signal) => {
  const data = dataset.variables.filter(({ isCoordinate }) => !isCoordinate);
  const [variable, ...others] = data.length > 0 ? data : dataset.variables;
  if (variable === undefined || others.length > 0)
    throw wrongParameter("f", "npy", "one variable (var=) for npy", data.map(({ name }) => name).join());
  return createNpy(await outputOf(dataset, variable, values, signal));
};

/**
 * Lays out one variable as a file of numpy (NEP 1, version 1.0): little-endian, C order.
 * @throws ZpublishError `invalid-query` for types without a fixed size whose longest text is not known, and for records.
 */
export function createNpy(variable: OutputVariable): FileBody {
  const { dataType, shape, textBytes } = variable;
  const { kind, itemSize, timeUnit } = dataType;
  // Texts without a fixed size are written as UTF-8, the only fixed form whose length is known.
  const isText = kind === "O" && textBytes !== undefined;
  if ((kind === "O" && !isText) || typeof dataType.zarr !== "string") {
    const expected = `a type of fixed size; variable '${variable.name}' is ${dataType.numpyName}`;
    throw wrongParameter("f", "unsupported_type", expected, "npy");
  }
  const itemBytes = isText ? Math.max(1, textBytes) : itemSize;
  const characters = kind === "U" ? itemSize / 4 : itemBytes;
  const unit = timeUnit === undefined ? "" : `[${timeUnit}]`;
  const order = itemSize === 1 || "SVO".includes(kind) ? "|" : "<";
  const descr = `${order}${kind === "O" ? "S" : kind}${characters}${unit}`;
  const lengths = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const fields = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${lengths}, }`;
  const headerLength = Math.ceil((10 + fields.length + 1) / 64) * 64;
  const header = Buffer.from(`\x93NUMPY\x01\x00..${fields.padEnd(headerLength - 11)}\n`, "latin1");
  header.writeUInt16LE(headerLength - 10, 8);
  const count = elementCount(shape);
  const byteLength = headerLength + count * itemBytes;
  const part = {
    ...{ begin: headerLength, byteLength: count * itemBytes, itemBytes },
    async *read(firstItem: number, signal: AbortSignal) {
      for await (const block of variable.read(firstItem, "little", signal))
        if (isText) yield* bytesOfTexts(block.values as readonly string[], itemBytes);
        else yield block.bytes;
    },
  };
  return createFileBody({ header, parts: [part], byteLength });
}
