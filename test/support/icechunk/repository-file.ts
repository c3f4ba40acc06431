import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Repository } from "./open-icechunk.js";

/*
 * What Icechunk's library cannot write, written into the flatbuffers of its files: https://icechunk.io/en/latest/reference/spec-v2-1.
 */

/** Length of the header of every file of a repository. Its last byte says how the rest is compressed: 0 not at all, 1 with Zstandard. */
export const HEADER_BYTES = 39;

/** Field of the configuration in the table of the file `repo`. */
const CONFIG_FIELD = 9;

/** A value of FlexBuffers; objects are maps. */
type FlexValue = null | string | { readonly [key: string]: FlexValue };

/**
 * Replaces the configuration of a repository of format 2 whose files are not compressed (`repository.inflate`): Icechunk's library for
 * Node.js gives containers of virtual chunks no names.
 */
export async function setConfiguration(repository: Repository, config: FlexValue): Promise<void> {
  const path = join(repository.path, "repo");
  const file = await readFile(path);
  const payload = file.subarray(HEADER_BYTES);
  const root = payload.readUInt32LE(0);
  const fields = root - payload.readInt32LE(root);
  const field = root + payload.readUInt16LE(fields + 4 + 2 * CONFIG_FIELD);
  if (field === root) throw new Error("expected a repository with a configuration");
  const value = encodeFlexBuffer(config);
  // The vector goes behind everything else.
  const padding = Buffer.alloc(-payload.length & 3);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  const copy = Buffer.concat([file, padding, length, value]);
  copy.writeUInt32LE(payload.length + padding.length - field, HEADER_BYTES + field);
  await writeFile(path, copy);
}

/** Encodes a value as FlexBuffers, with four bytes for every number and offset. */
function encodeFlexBuffer(value: FlexValue): Buffer {
  const TYPES = { null: 0, string: 5, map: 9 } as const;
  let bytes = Buffer.alloc(0);
  const append = (...parts: readonly Uint8Array[]) => {
    bytes = Buffer.concat([bytes, ...parts]);
  };
  const uint32 = (number: number) => {
    const four = Buffer.alloc(4);
    four.writeUInt32LE(number);
    return four;
  };
  const align = () => append(Buffer.alloc(-bytes.length & 3));

  /** Writes what a value refers to. Returns its place, and its type with the width of its elements. */
  function write(value: FlexValue): { readonly place: number; readonly type: number } {
    if (value === null) return { place: 0, type: TYPES.null };
    if (typeof value === "string") {
      align();
      const place = bytes.length + 4;
      append(uint32(Buffer.byteLength(value)), Buffer.from(`${value}\0`));
      return { place, type: (TYPES.string << 2) | 2 };
    }
    const names = Object.keys(value).sort();
    const keys = names.map((name) => {
      const place = bytes.length;
      append(Buffer.from(`${name}\0`));
      return place;
    });
    const values = names.map((name) => write(value[name] as FlexValue));
    align();
    append(uint32(names.length));
    const keyVector = bytes.length;
    for (const key of keys) append(uint32(bytes.length - key));
    append(uint32(bytes.length - keyVector), uint32(4), uint32(names.length));
    const place = bytes.length;
    for (const each of values) append(uint32(each.type === TYPES.null ? 0 : bytes.length - each.place));
    append(Uint8Array.from(values, ({ type }) => type));
    return { place, type: (TYPES.map << 2) | 2 };
  }

  const root = write(value);
  align();
  append(uint32(bytes.length - root.place), Uint8Array.of(root.type, 4));
  return bytes;
}
