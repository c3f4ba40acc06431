import type { CooperativeTask } from "../../../event-loop/cooperative-task.js";

/**
 * Returns the positions of numbers in ascending order of the numbers. Merges the ascending runs that are there: the order of an
 * index is sorted but for few places, or consists of few runs.
 */
export function* sortedOrder(numbers: Float64Array): CooperativeTask<Uint32Array> {
  const count = numbers.length;
  let order = new Uint32Array(count);
  let ends: number[] = [];
  for (let i = 0; i < count; i++) {
    order[i] = i;
    if (i + 1 === count || numbers[i + 1]! < numbers[i]!) ends.push(i + 1);
    if (i % 65_536 === 65_535) yield;
  }
  let other = new Uint32Array(count);
  while (ends.length > 1) {
    const merged: number[] = [];
    let start = 0;
    for (let run = 0; run < ends.length; run += 2) {
      const middle = ends[run]!;
      const end = ends[run + 1] ?? middle;
      yield* merge(numbers, order, other, start, middle, end);
      merged.push(end);
      start = end;
    }
    [order, other] = [other, order];
    ends = merged;
  }
  return order;
}

/** Merges `from[start, middle)` and `from[middle, end)` into `to`. */
function* merge(
  numbers: Float64Array,
  from: Uint32Array,
  to: Uint32Array,
  start: number,
  middle: number,
  end: number,
): CooperativeTask<void> {
  let left = start;
  let right = middle;
  for (let at = start; at < end; at++) {
    const takesLeft = right >= end || (left < middle && numbers[from[left]!]! <= numbers[from[right]!]!);
    to[at] = takesLeft ? from[left++]! : from[right++]!;
    if (at % 16_384 === 16_383) yield;
  }
}
