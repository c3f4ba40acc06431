export { shuffleBits, unshuffleBits } from "./bit-shuffle";
export { decodeBlosclz } from "./blosclz-decode";
export { encodeBlosclz } from "./blosclz-encode";
export { shuffleBytes, unshuffleBytes } from "./byte-shuffle";
export { decodeLz4 } from "./lz4-decode";
export { encodeLz4 } from "./lz4-encode";
export { encodeLz4hc } from "./lz4hc-encode";
