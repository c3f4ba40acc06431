/** A value of Thrift's compact protocol. Integers beyond 2^53 are rounded: none is that large here. */
export type ThriftValue = number | boolean | Uint8Array | readonly ThriftValue[] | ThriftStruct;

/** A struct: values by the numbers of their fields. */
export type ThriftStruct = ReadonlyMap<number, ThriftValue>;

/** Metadata of Parquet nests six levels. */
const MAX_DEPTH = 16;

/**
 * Reads a struct in Thrift's compact protocol, in which Parquet's metadata is written.
 * @returns The struct, and where it ends.
 * @throws Error if it does not end, or is of another form.
 */
export function readThrift(
  bytes: Uint8Array,
  offset: number,
): { readonly struct: ThriftStruct; readonly end: number } {
  let at = offset;

  function byte(): number {
    const value = bytes[at++];
    if (value === undefined) throw new Error("expected more metadata, it is cut short");
    return value;
  }

  function varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const next = byte();
      value |= BigInt(next & 127) << shift;
      if (next < 128) return value;
    }
    throw new Error("expected an integer of at most 64 bits");
  }

  function integer(): number {
    const value = varint();
    return Number((value >> 1n) ^ -(value & 1n));
  }

  function take(byteLength: number): Uint8Array {
    if (byteLength > bytes.length - at) throw new Error("expected more metadata, it is cut short");
    at += byteLength;
    return bytes.subarray(at - byteLength, at);
  }

  function list(depth: number): ThriftValue[] {
    const head = byte();
    const size = head >> 4 === 15 ? Number(varint()) : head >> 4;
    // Each item takes a byte at least.
    if (size > bytes.length - at) throw new Error(`expected a shorter list, received one of ${size} items`);
    return Array.from({ length: size }, () => item(head & 15, depth));
  }

  /** Reads an item of a list: booleans are bytes there. */
  function item(type: number, depth: number): ThriftValue {
    return type === 1 || type === 2 ? byte() === 1 : value(type, depth);
  }

  function value(type: number, depth: number): ThriftValue {
    if (depth > MAX_DEPTH) throw new Error(`expected at most ${MAX_DEPTH} levels of metadata`);
    if (type === 1 || type === 2) return type === 1;
    if (type === 3) return (byte() << 24) >> 24;
    if (type >= 4 && type <= 6) return integer();
    // Floating-point numbers are read past.
    if (type === 7) return take(8);
    if (type === 8) return take(Number(varint()));
    if (type === 9 || type === 10) return list(depth + 1);
    if (type === 12) return struct(depth + 1);
    throw new Error(`expected a known type of metadata, received ${type}`);
  }

  function struct(depth: number): ThriftStruct {
    const fields = new Map<number, ThriftValue>();
    let field = 0;
    for (let head = byte(); head !== 0; head = byte()) {
      field = head >> 4 === 0 ? integer() : field + (head >> 4);
      fields.set(field, value(head & 15, depth));
    }
    return fields;
  }

  return { struct: struct(0), end: at };
}
