/** A variable of a {@link netcdf3File}. */
export interface Netcdf3Variable {
  readonly name: string;
  /** Indices of its dimensions. */
  readonly dims: readonly number[];
  /** float32 or float64, in C order. */
  readonly values: Float32Array | Float64Array;
  readonly attrs?: Readonly<Record<string, string>>;
}

const NC_CHAR = 2;
const NC_FLOAT = 5;
const NC_DOUBLE = 6;
const DIMENSIONS = 0x0a;
const VARIABLES = 0x0b;
const ATTRIBUTES = 0x0c;

/** Bytes of a small file in NetCDF's classic format (CDF-1), without record dimension. */
export function netcdf3File(
  dimensions: readonly (readonly [name: string, length: number])[],
  variables: readonly Netcdf3Variable[],
): Buffer {
  const header = (begins: readonly number[]) =>
    Buffer.concat([
      Buffer.from("CDF\x01\0\0\0\0", "latin1"),
      ...list(DIMENSIONS, dimensions, ([name, length]) => [text(name), number(length)]),
      ...list(ATTRIBUTES, [], () => []),
      ...list(VARIABLES, variables, ({ name, dims, values, attrs = {} }, at) => [
        ...[text(name), number(dims.length), ...dims.map(number)],
        ...list(ATTRIBUTES, Object.entries(attrs), ([key, value]) => [
          text(key),
          number(NC_CHAR),
          text(value),
        ]),
        ...[values instanceof Float32Array ? NC_FLOAT : NC_DOUBLE, padded(values.byteLength)].map(number),
        number(begins[at] as number),
      ]),
    ]);
  let offset = header(variables.map(() => 0)).length;
  const begins = variables.map(({ values }) => {
    const begin = offset;
    offset += padded(values.byteLength);
    return begin;
  });
  return Buffer.concat([header(begins), ...variables.map(({ values }) => bigEndian(values))]);
}

function list<Item>(
  tag: number,
  items: readonly Item[],
  write: (item: Item, at: number) => readonly Buffer[],
): Buffer[] {
  return [number(items.length === 0 ? 0 : tag), number(items.length), ...items.flatMap(write)];
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / 4) * 4;
}

function bigEndian(values: Float32Array | Float64Array): Buffer {
  const bytes = Buffer.from(values.slice().buffer);
  return values instanceof Float32Array ? bytes.swap32() : bytes.swap64();
}
