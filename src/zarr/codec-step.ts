import type { CodecSpec } from "./codec-spec.js";

/** One codec, and the bytes that it works on. Plain data: no lossless numbers, no big integers. */
export interface CodecStep {
  readonly codec: CodecSpec;
  /** Byte length on the decoded side, against which input and output are checked; null if unknown. */
  readonly decodedByteLength: number | null;
  /** `decodedByteLength` if it is known, else a limit: nothing larger is ever allocated for the decoded side. */
  readonly maxDecodedByteLength: number;
  /** Item size on the decoded side, for codecs that need it (Blosc's typesize, shuffle); 1 if unknown. */
  readonly itemSize: number;
}
