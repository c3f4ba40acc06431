/** An HDF5 file as its metadata describe it, with nothing of netCDF's conventions. All addresses are offsets in the file. */
export interface Hdf5File {
  readonly root: Hdf5Group;
  /**
   * Objects and links that cannot be used, by path without a leading slash, and the reason. Soft links to datasets are followed;
   * those to groups are here, and links to other files.
   */
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
  readonly warnings: readonly string[];
}

/** A group, with the objects that hard links of it lead to. */
export interface Hdf5Group {
  /** Address of its object header, which object references name. */
  readonly address: number;
  /** `/`, `/a/b`. That of the first link if several lead to the group. */
  readonly path: string;
  readonly attributes: ReadonlyMap<string, Hdf5Attribute>;
  /** By name, in the order of creation if the file tells it, else of names. An object with two links is in both places. */
  readonly groups: ReadonlyMap<string, Hdf5Group>;
  readonly datasets: ReadonlyMap<string, Hdf5Dataset>;
}

/** A dataset. */
export interface Hdf5Dataset {
  readonly address: number;
  /** Null for a dataset without items (a null dataspace); `[]` for a scalar. */
  readonly shape: readonly number[] | null;
  /** Null along axes without limit. */
  readonly maxShape: readonly (number | null)[];
  readonly type: Hdf5Type;
  /** The fill value that was written in the file; null for zeros, or if none is defined. */
  readonly fill: Uint8Array | null;
  readonly layout: Hdf5Layout;
  /** In the order in which they were applied. */
  readonly filters: readonly Hdf5Filter[];
  readonly attributes: ReadonlyMap<string, Hdf5Attribute>;
}

/** Place of a dataset's items. */
export type Hdf5Layout =
  | { readonly kind: "compact"; readonly bytes: Uint8Array }
  /** `address` is null if nothing was written. */
  | { readonly kind: "contiguous"; readonly address: number | null; readonly byteLength: number }
  | Hdf5ChunkedLayout
  /** Not served: `reason` says why. */
  | { readonly kind: "unsupported"; readonly reason: string };

/** Chunks and the index that finds them. */
export interface Hdf5ChunkedLayout {
  readonly kind: "chunked";
  readonly chunkShape: readonly number[];
  /** Bytes of an item, as the layout message says. */
  readonly itemSize: number;
  /** Null if nothing was written. */
  readonly address: number | null;
  /** Offset in the file that addresses inside the index count from: the superblock's base address. */
  readonly baseAddress: number;
  readonly index: Hdf5ChunkIndex;
}

/** The index of chunks, with what the layout message says of it (HDF5 File Format Specification, IV.A.2.i). */
export type Hdf5ChunkIndex =
  | { readonly kind: "b-tree-1" | "implicit" | "fixed-array" | "extensible-array" | "b-tree-2" }
  | { readonly kind: "single"; readonly byteLength: number | null; readonly filterMask: number };

/** A filter of a pipeline. */
export interface Hdf5Filter {
  /** As The HDF Group registers it: 1 deflate, 2 shuffle, 3 fletcher32, … */
  readonly id: number;
  readonly name: string;
  /** Client data. */
  readonly values: readonly number[];
}

/** A datatype (HDF5 File Format Specification, IV.A.2.d). */
export type Hdf5Type =
  | {
      readonly kind: "integer";
      readonly size: number;
      readonly isSigned: boolean;
      readonly byteOrder: "<" | ">";
      /** Bits that count, from `bitOffset` on. All of them unless n-bit types are used. */
      readonly precision: number;
      readonly bitOffset: number;
    }
  /** Only IEEE 754 of 2, 4 and 8 bytes; other layouts are `other`. */
  | { readonly kind: "float"; readonly size: number; readonly byteOrder: "<" | ">" }
  | {
      readonly kind: "string";
      readonly size: number;
      readonly padding: "null-terminated" | "null-padded" | "space-padded";
      readonly charset: "ascii" | "utf-8";
    }
  | { readonly kind: "vlen-string"; readonly size: number; readonly charset: "ascii" | "utf-8" }
  | { readonly kind: "vlen"; readonly size: number; readonly base: Hdf5Type }
  | {
      readonly kind: "enum";
      readonly size: number;
      readonly base: Hdf5Type;
      readonly members: readonly { readonly name: string; readonly value: bigint }[];
    }
  | {
      readonly kind: "compound";
      readonly size: number;
      readonly fields: readonly { readonly name: string; readonly offset: number; readonly type: Hdf5Type }[];
    }
  | {
      readonly kind: "array";
      readonly size: number;
      readonly base: Hdf5Type;
      readonly shape: readonly number[];
    }
  | { readonly kind: "opaque"; readonly size: number; readonly tag: string }
  | { readonly kind: "object-reference"; readonly size: number }
  /** Types that nothing is made of: region references, times, floats of other layouts, complex numbers of HDF5 2.0. */
  | { readonly kind: "other"; readonly size: number; readonly description: string };

/** An attribute with its values. */
export interface Hdf5Attribute {
  readonly type: Hdf5Type;
  /** Null for an attribute without value (a null dataspace); `[]` for a scalar. */
  readonly shape: readonly number[] | null;
  /** Items in C order; undefined if they cannot be read, and `problem` says why. */
  readonly items: readonly Hdf5Item[] | undefined;
  readonly problem?: string;
}

/**
 * An item of an attribute: a number, a bigint for integers of 8 bytes, a string, a list for arrays (flat, in C order), for
 * variable-length lists, an object for compounds, bytes for opaque items, `address` for
 * references (null if it leads nowhere). Enumerations are as their base.
 */
export type Hdf5Item =
  | number
  | bigint
  | string
  | Uint8Array
  | readonly Hdf5Item[]
  | { readonly fields: ReadonlyMap<string, Hdf5Item> }
  | { readonly address: number | null };
