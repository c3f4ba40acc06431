import type { CodecSpec } from "../zarr/codec-step.js";
import type { InnerCodec } from "./blosc/blosc-frame.js";
import { innerCodecSpec } from "./blosc/inner-encoders.js";
import { encodeZstd } from "./zstd.js";

const { arch, versions } = process;
const ZLIB = `zlib ${versions.zlib} ${arch}`;

/** Encoders that write other bytes with another version or on another kind of machine, by codec id. */
const LIBRARIES: ReadonlyMap<string, string> = new Map([
  ["gzip", ZLIB],
  ["zlib", ZLIB],
  ["zstd", encodeZstd === undefined ? "numcodecs.js" : `zstd ${versions.zstd} ${arch}`],
]);

/**
 * Returns the revision of a codec's encoder: library, version and architecture. It becomes part of plan ids, ETags and cache keys,
 * because an ETag is known before its chunk is encoded. Empty if the output depends on the version of this package only.
 */
export function encoderRevision(codec: CodecSpec): string {
  if (codec.id !== "blosc") return LIBRARIES.get(codec.id) ?? "";
  const inner = innerCodecSpec(codec.cname as InnerCodec, Number(codec.clevel));
  return inner === undefined ? "" : encoderRevision(inner);
}
