import type { ByteCursor } from "./byte-cursor.js";

/** A link of a group to an object. */
export type Hdf5Link = { readonly name: string; readonly creationOrder?: number } & (
  | { readonly kind: "hard"; readonly address: number }
  /** To a path, from the group or, with a leading slash, from the root. */
  | { readonly kind: "soft"; readonly target: string }
  /** Not followed. */
  | { readonly kind: "other"; readonly reason: string }
);

const HARD = 0;
const SOFT = 1;
const EXTERNAL = 64;

/**
 * Parses a link message (HDF5 File Format Specification, IV.A.2.g).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseLink(cursor: ByteCursor): Hdf5Link {
  cursor.version(1, 1);
  const flags = cursor.u8();
  const kind = (flags & 0x08) !== 0 ? cursor.u8() : HARD;
  const order = (flags & 0x04) !== 0 ? { creationOrder: cursor.u64() } : {};
  // Charset: ASCII is UTF-8, too.
  if ((flags & 0x10) !== 0) cursor.skip(1);
  const name = cursor.text(cursor.uint(1 << (flags & 3)));
  if (kind === HARD) return { name, ...order, kind: "hard", address: cursor.address() };
  if (kind === SOFT) return { name, ...order, kind: "soft", target: cursor.text(cursor.u16()) };
  const reason =
    kind === EXTERNAL ? "it is a link to another file" : `it is a link of the user-defined kind ${kind}`;
  return { name, ...order, kind: "other", reason };
}
