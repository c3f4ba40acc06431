import type { CodecSpec } from "../codec-spec.js";
import type { OptionRule } from "./option-rules.js";

/**
 * Facts about a codec that need no implementation: options with numcodecs' defaults, and what can be decoded or encoded.
 * The implementations are in `codec/`; a test compares both tables.
 */
export interface CodecRule {
  /** Options that an operator may ask for. Their defaults complete stored documents, too. */
  readonly options: Readonly<Record<string, OptionRule>>;
  /**
   * Options that are never served: decoding does not depend on them, and older clients reject them as unknown. numcodecs
   * before 0.13 has no `checksum` of zstd, before 0.16 no `typesize` of Blosc.
   */
  readonly omitted?: readonly string[];
  /** The role in which an operator may ask for the codec; undefined if only stored arrays have it. */
  readonly askedAs?: "compressor" | "filter";
  /** True if clients do not know the codec: it is decoded, and left out of what is served. Default false. */
  readonly isInternal?: boolean;
  /** Says why a configuration cannot be decoded; undefined if it can. Default: every one can. */
  readonly decodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Says why a configuration cannot be encoded; undefined if it can. Default: every one can. */
  readonly encodeProblem?: (codec: CodecSpec) => string | undefined;
  /** Returns the byte length after encoding; null if it depends on the bytes. */
  readonly encodedByteLength: (codec: CodecSpec, decodedByteLength: number) => number | null;
  /** Returns the item size on the encoded side. Default: 1, since encoded bytes have no items. */
  readonly encodedItemSize?: (codec: CodecSpec, itemSize: number) => number;
}
