const PRIME_1 = 0x9e3779b185ebca87n;
const PRIME_2 = 0xc2b2ae3d27d4eb4fn;
const PRIME_3 = 0x165667b19e3779f9n;
const PRIME_4 = 0x85ebca77c2b2ae63n;
const PRIME_5 = 0x27d4eb2f165667c5n;

const STRIPE_BYTES = 32;

/**
 * Returns the XXH64 of bytes with the seed 0 (xxhash_spec.md, "XXH64 algorithm"). Slow, as it counts with big integers: few writers of
 * zstd ask for a checksum.
 */
export function xxh64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { length } = bytes;
  let position = 0;
  let hash = PRIME_5;
  if (length >= STRIPE_BYTES) {
    const lanes = [wrap(PRIME_1 + PRIME_2), PRIME_2, 0n, wrap(-PRIME_1)];
    for (; position + STRIPE_BYTES <= length; position += STRIPE_BYTES)
      for (let lane = 0; lane < 4; lane++)
        lanes[lane] = round(lanes[lane]!, view.getBigUint64(position + 8 * lane, true));
    const [a, b, c, d] = lanes as [bigint, bigint, bigint, bigint];
    hash = wrap(rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n));
    for (const lane of lanes) hash = wrap((hash ^ round(0n, lane)) * PRIME_1 + PRIME_4);
  }
  hash = wrap(hash + BigInt(length));
  for (; position + 8 <= length; position += 8)
    hash = wrap(rotate(hash ^ round(0n, view.getBigUint64(position, true)), 27n) * PRIME_1 + PRIME_4);
  if (position + 4 <= length) {
    hash = wrap(
      rotate(hash ^ wrap(BigInt(view.getUint32(position, true)) * PRIME_1), 23n) * PRIME_2 + PRIME_3,
    );
    position += 4;
  }
  for (; position < length; position++)
    hash = wrap(rotate(hash ^ wrap(BigInt(bytes[position]!) * PRIME_5), 11n) * PRIME_1);
  hash = wrap((hash ^ (hash >> 33n)) * PRIME_2);
  hash = wrap((hash ^ (hash >> 29n)) * PRIME_3);
  return hash ^ (hash >> 32n);
}

function round(lane: bigint, input: bigint): bigint {
  return wrap(rotate(wrap(lane + input * PRIME_2), 31n) * PRIME_1);
}

function rotate(value: bigint, bits: bigint): bigint {
  return wrap((value << bits) | (value >> (64n - bits)));
}

function wrap(value: bigint): bigint {
  return BigInt.asUintN(64, value);
}
