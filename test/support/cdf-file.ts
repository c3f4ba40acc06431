/** Names of the types by their number, with the bytes of an item. */
export const CDF_TYPES = {
  byte: { number: 1, itemSize: 1 },
  char: { number: 2, itemSize: 1 },
  short: { number: 3, itemSize: 2 },
  int: { number: 4, itemSize: 4 },
  float: { number: 5, itemSize: 4 },
  double: { number: 6, itemSize: 8 },
  ubyte: { number: 7, itemSize: 1 },
  ushort: { number: 8, itemSize: 2 },
  uint: { number: 9, itemSize: 4 },
  int64: { number: 10, itemSize: 8 },
  uint64: { number: 11, itemSize: 8 },
} as const;

export type CdfType = keyof typeof CDF_TYPES;

/** An attribute: items in big-endian bytes. */
export interface CdfAttribute {
  readonly name: string | Uint8Array;
  readonly type: CdfType;
  readonly bytes: Uint8Array;
}

/** A variable: all items in big-endian bytes, those of all records one behind the other. */
export interface CdfVariable {
  readonly name: string | Uint8Array;
  readonly type: CdfType;
  /** Numbers of dimensions. */
  readonly dimensions: readonly number[];
  readonly attributes?: readonly CdfAttribute[];
  readonly bytes: Uint8Array;
}

/** Content of a file. */
export interface CdfContent {
  readonly version: 1 | 2 | 5;
  /** A length of 0 is that of the record dimension. */
  readonly dimensions: readonly { readonly name: string | Uint8Array; readonly length: number | bigint }[];
  readonly attributes?: readonly CdfAttribute[];
  readonly variables: readonly CdfVariable[];
  readonly recordCount?: number;
  /** Number of records as the header has it. Default: `recordCount`. */
  readonly writtenRecordCount?: bigint;
  /** Bytes between the header and the data. */
  readonly gap?: number;
}

/** Writes a file as the NetCDF Classic Format Specification says. Sizes of variables (`vsize`) are wrong on purpose. */
export function cdfFile(content: CdfContent): Uint8Array {
  const { dimensions, variables, recordCount = 0, gap = 0 } = content;
  const hasRecords = (variable: CdfVariable) =>
    variable.dimensions[0] !== undefined && dimensions[variable.dimensions[0]]?.length === 0;
  const withRecords = variables.filter(hasRecords);
  const pad = (length: number) => (withRecords.length === 1 ? length : padded(length));
  const recordBytes = (variable: CdfVariable) =>
    recordCount === 0 ? 0 : variable.bytes.length / recordCount;

  const headerBytes = header(content, () => 0).length;
  const begins = new Map<CdfVariable, number>();
  let end = padded(headerBytes) + gap;
  for (const variable of variables.filter((each) => !hasRecords(each))) {
    begins.set(variable, end);
    end = padded(end + variable.bytes.length);
  }
  const stride = withRecords.reduce((sum, each) => sum + pad(recordBytes(each)), 0);
  const recordsBegin = end;
  for (const variable of withRecords) {
    begins.set(variable, end);
    end += pad(recordBytes(variable));
  }
  const file = new Uint8Array(recordsBegin + recordCount * stride).fill(0xaa);
  file.set(header(content, (variable) => begins.get(variable) as number));
  for (const variable of variables) {
    const begin = begins.get(variable) as number;
    if (!hasRecords(variable)) file.set(variable.bytes, begin);
    else {
      const length = recordBytes(variable);
      for (let i = 0; i < recordCount; i++)
        file.set(variable.bytes.subarray(i * length, (i + 1) * length), begin + i * stride);
    }
  }
  return file;
}

function header(content: CdfContent, begin: (variable: CdfVariable) => number): Uint8Array {
  const { version, recordCount = 0, writtenRecordCount = BigInt(recordCount) } = content;
  const parts: Uint8Array[] = [];
  const bytes = (part: Uint8Array) => parts.push(part, new Uint8Array(-part.length & 3));
  const word = (value: number) => bytes(bigEndian(BigInt(value), 4));
  const count = (value: number | bigint) => bytes(bigEndian(BigInt(value), version === 5 ? 8 : 4));
  const name = (text: string | Uint8Array) => {
    const encoded = typeof text === "string" ? Buffer.from(text) : text;
    count(encoded.length);
    bytes(encoded);
  };
  const list = (tag: number, length: number) => {
    word(length === 0 ? 0 : tag);
    count(length);
  };
  const attributes = (all: readonly CdfAttribute[] = []) => {
    list(12, all.length);
    for (const attribute of all) {
      name(attribute.name);
      word(CDF_TYPES[attribute.type].number);
      count(attribute.bytes.length / CDF_TYPES[attribute.type].itemSize);
      bytes(attribute.bytes);
    }
  };
  bytes(Uint8Array.of(0x43, 0x44, 0x46, version));
  count(writtenRecordCount);
  list(10, content.dimensions.length);
  for (const dimension of content.dimensions) {
    name(dimension.name);
    count(dimension.length);
  }
  attributes(content.attributes);
  list(11, content.variables.length);
  for (const variable of content.variables) {
    name(variable.name);
    count(variable.dimensions.length);
    for (const dimension of variable.dimensions) count(dimension);
    attributes(variable.attributes);
    word(CDF_TYPES[variable.type].number);
    count(7);
    bytes(bigEndian(BigInt(begin(variable)), version === 1 ? 4 : 8));
  }
  return Buffer.concat(parts);
}

function padded(length: number): number {
  return length + (-length & 3);
}

function bigEndian(value: bigint, byteLength: number): Uint8Array {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(value);
  return bytes.subarray(8 - byteLength);
}
