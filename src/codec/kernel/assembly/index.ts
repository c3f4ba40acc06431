export { shuffleBits, unshuffleBits } from "./bit-shuffle";
export { decodeBlosclz } from "./blosclz-decode";
export { shuffleBytes, swapWords, unshuffleBytes } from "./byte-shuffle";
export { decodeLz4 } from "./lz4-decode";
export { encodeLz4 } from "./lz4-encode";
