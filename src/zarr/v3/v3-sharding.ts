import type { JsonValue } from "../../json/json-value.js";
import { elementCount } from "../../model/chunk-grid.js";
import type { ShardLevel } from "../chunk-source.js";
import { describeValue, invalidField, parseArray, parseIntegers } from "../metadata-fields.js";
import { type CodecChain, parseCodecChain, parseEndian } from "./v3-codecs.js";
import { parseExtension, unsupported, v3Document } from "./v3-extension.js";

/** Largest number of chunks in a shard: its index, which is read whole, has a gibibyte then. */
const maxChunksPerShard = 2 ** 26;

/** The innermost chunks of shards, and the levels around them. */
export interface ShardedChunks {
  readonly chunkShape: readonly number[];
  /** The codecs of one chunk. */
  readonly chain: CodecChain;
  /** Outermost first; empty if chunks are not sharded. */
  readonly levels: readonly ShardLevel[];
}

/**
 * Parses `sharding_indexed`, level by level, down to the chunks that are no shards.
 * @param outer The array's codecs.
 * @param gridChunk `chunk_shape` of the array's grid.
 * @param itemType As for {@link parseCodecChain}.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseSharding(
  outer: CodecChain,
  gridChunk: readonly number[],
  itemType: JsonValue,
): ShardedChunks {
  const levels: ShardLevel[] = [];
  let chain = outer;
  let chunkShape = gridChunk;
  while (chain.serializer === "sharding_indexed") {
    assertNoOtherCodecs(chain);
    const shardShape = chunkShape;
    chunkShape = parseInnerShape(chain, shardShape);
    levels.push(parseLevel(chain, shardShape, chunkShape));
    chain = parseCodecChain(chain.sharding.codecs, gridChunk.length, itemType);
  }
  return { chunkShape, chain, levels: Object.freeze(levels) };
}

/** Asserts that no other codec surrounds a shard: it would hide the index. */
function assertNoOtherCodecs({ codecs, axisOrder }: CodecChain): void {
  if (codecs.length === 0 && axisOrder.every((axis, position) => axis === position)) return;
  throw unsupported("no codec beside sharding_indexed", JSON.stringify(codecs[0]?.id ?? "transpose"));
}

function parseInnerShape({ sharding }: CodecChain, shardShape: readonly number[]): readonly number[] {
  const { chunk_shape } = sharding;
  const what = "chunk_shape of sharding_indexed";
  const chunkShape = parseIntegers(chunk_shape, v3Document, what, 1, shardShape.length);
  if (chunkShape.every((length, axis) => (shardShape[axis] as number) % length === 0)) return chunkShape;
  throw invalidField(v3Document, `${what} to divide the shard's ${describeValue(shardShape)}`, chunk_shape);
}

function parseLevel(
  { sharding }: CodecChain,
  shardShape: readonly number[],
  chunkShape: readonly number[],
): ShardLevel {
  const { index_codecs, index_location: indexLocation = "end" } = sharding;
  if (indexLocation !== "start" && indexLocation !== "end") {
    throw invalidField(v3Document, 'index_location to be "start" or "end"', indexLocation);
  }
  const chunksPerShard = shardShape.map((length, axis) => length / (chunkShape[axis] as number));
  if (elementCount(chunksPerShard) > maxChunksPerShard) {
    throw unsupported(`at most ${maxChunksPerShard} chunks per shard`, describeValue(chunksPerShard));
  }
  return Object.freeze({
    chunksPerShard: Object.freeze(chunksPerShard),
    indexLocation,
    ...parseIndexCodecs(index_codecs),
  });
}

/** Parses `index_codecs`: `bytes`, optionally followed by `crc32c`. */
function parseIndexCodecs(
  value: JsonValue | undefined,
): Pick<ShardLevel, "indexByteOrder" | "indexChecksum"> {
  const codecs = parseArray(value, v3Document, "index_codecs").map((codec) =>
    parseExtension(codec, "every index codec"),
  );
  const [bytes, checksum] = codecs;
  const isKnown =
    bytes?.name === "bytes" && codecs.length <= 2 && (checksum === undefined || checksum.name === "crc32c");
  if (!isKnown) throw unsupported("index_codecs to be bytes, or bytes and crc32c", describeValue(value));
  const indexByteOrder = parseEndian(bytes);
  if (indexByteOrder === undefined)
    throw invalidField(v3Document, "bytes of index_codecs to name an endian", value);
  return { indexByteOrder, indexChecksum: checksum !== undefined };
}
