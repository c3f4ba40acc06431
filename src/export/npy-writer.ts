import { wrongParameter } from "../http/query.js";
import { elementCount } from "../model/data-tree.js";
import type { DatasetWriter } from "./exported-dataset.js";
import { bytesOfTexts, createColumn, createFileBody, longestText } from "./file-body.js";

/**
 * Writes the one data variable of a dataset, or its one coordinate if it has none, as a file of numpy (NEP 1, version 1.0):
 * little-endian, C order.
 * @throws ZpublishError `invalid-query` for records, and for several variables
 */
export const writeNpy: DatasetWriter = async (dataset, values, signal) => {
  const data = dataset.variables.filter(({ isCoordinate }) => !isCoordinate);
  const [variable, ...others] = data.length > 0 ? data : dataset.variables;
  if (variable === undefined || others.length > 0) {
    const paths = data.map(({ name, source }) => ("array" in source ? source.array.variable.path : name));
    throw wrongParameter("f", "npy", "one variable (var=) for npy", paths.join());
  }
  const { name, dataType, shape } = variable;
  const { kind, itemSize, timeUnit } = dataType;
  if (typeof dataType.zarr !== "string") {
    const expected = `a type of fixed size; variable '${name}' is ${dataType.numpyName}`;
    throw wrongParameter("f", "unsupported_type", expected, "npy");
  }
  // Texts without a fixed size are written as UTF-8, the only fixed form whose length is known.
  const isText = kind === "O";
  const itemBytes = isText ? await longestText(dataset, variable, values, signal) : itemSize;
  const characters = kind === "U" ? itemSize / 4 : itemBytes;
  const unit = timeUnit === undefined ? "" : `[${timeUnit}]`;
  const order = itemSize === 1 || "SVO".includes(kind) ? "|" : "<";
  const descr = `${order}${isText ? "S" : kind}${characters}${unit}`;
  const lengths = shape.length === 1 ? `(${shape[0]},)` : `(${shape.join(", ")})`;
  const fields = `{'descr': '${descr}', 'fortran_order': False, 'shape': ${lengths}, }`;
  const headerLength = Math.ceil((10 + fields.length + 1) / 64) * 64;
  const header = Buffer.from(`\x93NUMPY\x01\x00..${fields.padEnd(headerLength - 11)}\n`, "latin1");
  header.writeUInt16LE(headerLength - 10, 8);
  const column = createColumn(dataset, variable, values, itemBytes, isText ? bytesOfTexts : "little");
  const rowBytes = elementCount(shape) * itemBytes;
  return createFileBody(header, [
    { rowCount: 1, rowLength: rowBytes, columns: [{ ...column, at: 0, rowBytes }] },
  ]);
};
