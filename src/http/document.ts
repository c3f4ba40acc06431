/** Content codings that a document is kept in, besides as it is. */
export type ContentCoding = "br" | "gzip";

/** Bytes prepared to be sent often: with their ETag, and kept compressed once somebody accepted that. Immutable. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** Strong, quoted, from the content: the same on every instance. */
  readonly etag: string;
  /**
   * The compressed form, made at the first call and kept; undefined where compression is not worth it (≤ 1 KiB, or no
   * gain). Never rejects.
   */
  encoded(coding: ContentCoding): Promise<Uint8Array | undefined>;
  /** The compressed form if it is there already; undefined where it is not worth it, null where it is not made yet. */
  encodedNow(coding: ContentCoding): Uint8Array | undefined | null;
}
