/** Content codings of the compressed forms of a document. */
export type ContentCoding = "br" | "gzip";

/** Immutable bytes to be sent often, with their ETag and, once a client accepts them, their compressed forms. */
export interface Document {
  readonly contentType: string;
  readonly bytes: Uint8Array;
  /** Strong, quoted, computed from the content: the same on every instance. */
  readonly etag: string;
  /**
   * Returns the compressed form, made at the first call and kept; undefined if compression does not pay (up to 1 KiB, or no
   * gain). Never rejects.
   */
  encoded(coding: ContentCoding): Promise<Uint8Array | undefined>;
  /** Returns the compressed form if it is made already; undefined if compression does not pay, null if it is not made yet. */
  encodedNow(coding: ContentCoding): Uint8Array | undefined | null;
}
