import { high8, low8 } from "./interleave";

/** Items that are transposed at a time. */
const LANES: usize = 16;
/** A line of the processor's cache. */
const LINE_BYTES: usize = 64;
/**
 * One cache line of each of sixteen planes. Planes often lie a power of two apart; written directly, their lines would evict one
 * another from the cache before they are full.
 */
const LINES = memory.data(1024, 64);

/** Byte shuffle of sixteen bytes of every item: the first of the source, the planes at the target. */
export function shuffle16(source: usize, target: usize, count: usize, itemSize: usize): void {
  let i: usize = 0;
  for (; i + LINE_BYTES <= count; i += LINE_BYTES) {
    for (let part: usize = 0; part < LINE_BYTES; part += LANES) {
      transpose16(source + (i + part) * itemSize, itemSize, LINES + part, LINE_BYTES);
    }
    copyLines(LINES, LINE_BYTES, target + i, count);
  }
  for (; i + LANES <= count; i += LANES) transpose16(source + i * itemSize, itemSize, target + i, count);
}

/** The opposite of {@link shuffle16}. */
export function unshuffle16(source: usize, target: usize, count: usize, itemSize: usize): void {
  let i: usize = 0;
  for (; i + LINE_BYTES <= count; i += LINE_BYTES) {
    copyLines(source + i, count, LINES, LINE_BYTES);
    for (let part: usize = 0; part < LINE_BYTES; part += LANES) {
      transpose16(LINES + part, LINE_BYTES, target + (i + part) * itemSize, itemSize);
    }
  }
  for (; i + LANES <= count; i += LANES) transpose16(source + i, count, target + i * itemSize, itemSize);
}

// @ts-ignore: decorator
@inline
function copyLines(from: usize, fromStep: usize, to: usize, toStep: usize): void {
  for (let line = 0; line < 16; line++) {
    v128.store(to, v128.load(from));
    v128.store(to, v128.load(from, 16), 16);
    v128.store(to, v128.load(from, 32), 32);
    v128.store(to, v128.load(from, 48), 48);
    from += fromStep;
    to += toStep;
  }
}

/** Transposes sixteen rows of sixteen bytes. */
function transpose16(from: usize, fromStep: usize, to: usize, toStep: usize): void {
  const a = v128.load(from);
  const b = v128.load((from += fromStep));
  const c = v128.load((from += fromStep));
  const d = v128.load((from += fromStep));
  const e = v128.load((from += fromStep));
  const f = v128.load((from += fromStep));
  const g = v128.load((from += fromStep));
  const h = v128.load((from += fromStep));
  const i = v128.load((from += fromStep));
  const j = v128.load((from += fromStep));
  const k = v128.load((from += fromStep));
  const l = v128.load((from += fromStep));
  const m = v128.load((from += fromStep));
  const n = v128.load((from += fromStep));
  const o = v128.load((from += fromStep));
  const p = v128.load(from + fromStep);
  storeEight(
    to,
    toStep,
    low8(a, i),
    low8(b, j),
    low8(c, k),
    low8(d, l),
    low8(e, m),
    low8(f, n),
    low8(g, o),
    low8(h, p),
  );
  storeEight(
    to + 8 * toStep,
    toStep,
    high8(a, i),
    high8(b, j),
    high8(c, k),
    high8(d, l),
    high8(e, m),
    high8(f, n),
    high8(g, o),
    high8(h, p),
  );
}

/** Eight columns, from vectors that hold pairs of rows: every step halves the columns in a vector. */
// @ts-ignore: decorator
@inline
function storeEight(
  to: usize,
  step: usize,
  a: v128,
  b: v128,
  c: v128,
  d: v128,
  e: v128,
  f: v128,
  g: v128,
  h: v128,
): void {
  storeFour(to, step, low8(a, e), low8(b, f), low8(c, g), low8(d, h));
  storeFour(to + 4 * step, step, high8(a, e), high8(b, f), high8(c, g), high8(d, h));
}

// @ts-ignore: decorator
@inline
function storeFour(to: usize, step: usize, a: v128, b: v128, c: v128, d: v128): void {
  storeTwo(to, step, low8(a, c), low8(b, d));
  storeTwo(to + 2 * step, step, high8(a, c), high8(b, d));
}

// @ts-ignore: decorator
@inline
function storeTwo(to: usize, step: usize, a: v128, b: v128): void {
  v128.store(to, low8(a, b));
  v128.store(to + step, high8(a, b));
}
