import { crc32, deflateRawSync } from "node:zlib";

/** An entry as it is written: content, and what is unusual about it. */
export interface ZipEntry {
  /** Text, or bytes that are no UTF-8. */
  readonly name: string | Uint8Array;
  readonly content: string | Uint8Array;
  /** Default false: stored. */
  readonly isDeflated?: boolean;
  /** Level of deflate; 0 stores bytes as they are. Default 6. */
  readonly level?: number;
  /** The deflated bytes, if they are known. */
  readonly deflated?: Uint8Array;
  /** Default: what the content has. */
  readonly method?: number;
  /** Default: UTF-8. */
  readonly flags?: number;
  readonly localExtra?: Uint8Array;
  readonly directoryExtra?: Uint8Array;
  /** Puts lengths and offset into a ZIP64 field. Default false. */
  readonly isZip64?: boolean;
  readonly disk?: number;
}

/** Options of the archive. */
export interface ZipOptions {
  /** Bytes before the archive, which its offsets do not count. */
  readonly prepended?: Uint8Array;
  readonly comment?: string | Uint8Array;
  /** Writes the ZIP64 record and its locator. Default false. */
  readonly isZip64?: boolean;
  /** Bytes behind the fields of the ZIP64 record. */
  readonly recordExtension?: Uint8Array;
  readonly disk?: number;
  /** Default: as many as there are. */
  readonly entries?: number;
}

const EMPTY = new Uint8Array(0);

/** Writes an archive. */
export function writeZip(entries: readonly ZipEntry[], options: ZipOptions = {}): Buffer {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  let offset = 0;
  for (const entry of entries) {
    const {
      deflated,
      isDeflated = deflated !== undefined,
      localExtra = EMPTY,
      directoryExtra = EMPTY,
      isZip64 = false,
    } = entry;
    const name = typeof entry.name === "string" ? Buffer.from(entry.name) : entry.name;
    const content = typeof entry.content === "string" ? Buffer.from(entry.content) : entry.content;
    const stored = deflated ?? (isDeflated ? deflateRawSync(content, { level: entry.level ?? 6 }) : content);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(isZip64 ? 45 : 20, 0);
    common.writeUInt16LE(entry.flags ?? 0x0800, 2);
    common.writeUInt16LE(entry.method ?? (isDeflated ? 8 : 0), 4);
    common.writeUInt32LE(crc32(content), 10);
    common.writeUInt32LE(isZip64 ? 0xffffffff : stored.length, 14);
    common.writeUInt32LE(isZip64 ? 0xffffffff : content.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.from(common);
    local.writeUInt16LE(localExtra.length, 24);
    const extra = Buffer.concat([
      directoryExtra,
      isZip64 ? zip64Field(content.length, stored.length, offset) : EMPTY,
    ]);
    common.writeUInt16LE(extra.length, 24);
    const rest = Buffer.alloc(14);
    rest.writeUInt16LE(entry.disk ?? 0, 2);
    rest.writeUInt32LE(isZip64 ? 0xffffffff : offset, 10);
    directory.push(Buffer.from("PK\x01\x02\x14\x03"), common, rest, name, extra);
    const all = Buffer.concat([Buffer.from("PK\x03\x04"), local, name, localExtra, stored]);
    parts.push(all);
    offset += all.length;
  }
  const directoryBytes = Buffer.concat(directory);
  return Buffer.concat([
    options.prepended ?? EMPTY,
    ...parts,
    directoryBytes,
    endOf(options.entries ?? entries.length, directoryBytes.length, offset, options),
  ]);
}

function zip64Field(...values: readonly number[]): Buffer {
  const field = Buffer.alloc(4 + 8 * values.length);
  field.writeUInt16LE(1, 0);
  field.writeUInt16LE(8 * values.length, 2);
  values.forEach((value, index) => {
    field.writeBigUInt64LE(BigInt(value), 4 + 8 * index);
  });
  return field;
}

function endOf(
  entries: number,
  byteLength: number,
  offset: number,
  { comment = "", isZip64 = false, disk = 0, recordExtension = EMPTY }: ZipOptions,
): Buffer {
  const text = Buffer.from(comment);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06");
  end.writeUInt16LE(disk, 4);
  end.writeUInt16LE(isZip64 ? 0xffff : entries & 0xffff, 8);
  end.writeUInt16LE(isZip64 ? 0xffff : entries & 0xffff, 10);
  end.writeUInt32LE(isZip64 ? 0xffffffff : byteLength, 12);
  end.writeUInt32LE(isZip64 ? 0xffffffff : offset, 16);
  end.writeUInt16LE(text.length, 20);
  if (!isZip64) return Buffer.concat([end, text]);
  const record = Buffer.alloc(56);
  record.write("PK\x06\x06");
  record.writeBigUInt64LE(BigInt(44 + recordExtension.length), 4);
  record.writeBigUInt64LE(BigInt(entries), 24);
  record.writeBigUInt64LE(BigInt(entries), 32);
  record.writeBigUInt64LE(BigInt(byteLength), 40);
  record.writeBigUInt64LE(BigInt(offset), 48);
  const locator = Buffer.alloc(20);
  locator.write("PK\x06\x07");
  locator.writeBigUInt64LE(BigInt(offset + byteLength), 8);
  locator.writeUInt32LE(1, 16);
  return Buffer.concat([record, recordExtension, locator, end, text]);
}
