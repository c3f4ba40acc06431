/** Bytes prepared to be sent often: with their ETag, and kept compressed once somebody accepted that. Immutable. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** Strong, quoted, from the content: the same on every instance. */
  readonly etag: string;
  /** The compressed form, made at the first call and kept; undefined where compression is not worth it (≤ 1 KiB, or no gain). */
  encoded(coding: "br" | "gzip"): Promise<Uint8Array | undefined>;
  /** The compressed form if it is there already. */
  encodedNow(coding: "br" | "gzip"): Uint8Array | undefined | null;
}
