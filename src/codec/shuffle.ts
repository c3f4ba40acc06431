import { shuffleBytes, unshuffleBytes } from "./byte-shuffle.js";
import { type Codec, corrupt } from "./codec.js";

/** `shuffle` of numcodecs: bytes of equal weight together. Lengths that are no multiple of `elementsize` are refused. */
export const shuffle: Codec = {
  decode: (bytes, { codec }) => run(unshuffleBytes, bytes, codec.elementsize),
  encode: (bytes, { codec }) => run(shuffleBytes, bytes, codec.elementsize),
};

function run(
  move: (source: Uint8Array, target: Uint8Array, itemSize: number) => void,
  bytes: Uint8Array,
  elementSize: unknown,
): Uint8Array {
  const itemSize = typeof elementSize === "number" ? elementSize : 4;
  if (itemSize <= 1) return bytes;
  if (bytes.length % itemSize !== 0) {
    throw corrupt(`shuffle: expected a multiple of ${itemSize} bytes, received ${bytes.length}`);
  }
  const target = new Uint8Array(bytes.length);
  move(bytes, target, itemSize);
  return target;
}
