import { createRandom } from "../random.js";
import { damageFile, type FileDamage } from "./damage-file.js";
import { type FileReading, readWholeFile } from "./file-reading.js";
import type { FileTarget } from "./file-targets.js";

/** What came of damaged files; sums of two results are made by `addFileResults`. */
export interface FileFuzzResult {
  readonly inputs: number;
  /** Files that were refused as a whole. */
  readonly refused: number;
  /** Chunks that were decoded, and that were refused, in files that opened. */
  readonly decodedChunks: number;
  readonly refusedChunks: number;
  readonly longestMs: number;
  readonly failures: readonly FileFailure[];
}

/** Something that must not happen. */
export interface FileFailure {
  readonly target: string;
  readonly seed: number;
  /** Number of the copy in its batch, from 0. */
  readonly number: number;
  readonly kind: string;
  readonly problem: string;
  readonly bytes: Uint8Array;
}

export const NO_FILE_RESULT: FileFuzzResult = {
  ...{ inputs: 0, refused: 0, decodedChunks: 0, refusedChunks: 0, longestMs: 0, failures: [] },
};

/** Longer than the largest of these files takes, also when others use the processor. */
const MAX_INPUT_MS = 5_000;

/** Reads damaged copies of a file. @param onInput Receives each copy before it is read. */
export async function fuzzFile(
  target: FileTarget,
  seed: number,
  count: number,
  onInput: (bytes: Uint8Array) => void = () => undefined,
): Promise<FileFuzzResult> {
  const copies = damageFile(target, createRandom(seed));
  let result = NO_FILE_RESULT;
  for (let number = 0; number < count; number++) {
    const damage = copies.next().value;
    onInput(damage.bytes);
    const began = performance.now();
    const reading = await readWholeFile(target.format, damage.bytes);
    const longestMs = performance.now() - began;
    const problems = [...reading.problems, ...inventedValues(target, damage, reading)];
    if (longestMs > MAX_INPUT_MS) problems.push(`expected at most ${MAX_INPUT_MS} ms, took ${longestMs}`);
    const { kind, bytes } = damage;
    const failures = problems
      .slice(0, 1)
      .map((problem) => ({ target: target.name, seed, number, kind, problem, bytes }));
    const chunks = [...reading.arrays.values()].flatMap((array) => [...array.chunks.values()]);
    const refusedChunks = chunks.filter((chunk) => chunk === "refused").length;
    result = addFileResults(result, {
      ...{ inputs: 1, refused: reading.refusal === undefined ? 0 : 1, refusedChunks, longestMs, failures },
      decodedChunks: chunks.length - refusedChunks,
    });
  }
  return result;
}

/** Returns sums, and the longest of both. */
export function addFileResults(a: FileFuzzResult, b: FileFuzzResult): FileFuzzResult {
  return {
    inputs: a.inputs + b.inputs,
    refused: a.refused + b.refused,
    decodedChunks: a.decodedChunks + b.decodedChunks,
    refusedChunks: a.refusedChunks + b.refusedChunks,
    longestMs: Math.max(a.longestMs, b.longestMs),
    failures: [...a.failures, ...b.failures],
  };
}

/**
 * Returns values of a damaged file that differ from those of the good one, though the bytes that they are made of are the same, or
 * are missing.
 */
export function inventedValues(
  { reading: good, extents, bytes }: Pick<FileTarget, "reading" | "extents" | "bytes">,
  damage: FileDamage,
  reading: FileReading,
): string[] {
  if (damage.scope === "any" || good.refusal !== undefined) return [];
  const mayDiffer = new Set<string>();
  if (damage.scope === "chunks") {
    if (reading.refusal !== undefined)
      return [`expected only chunks to be refused, received ${reading.refusal}`];
    for (const { path, key, begin, end } of extents)
      if (Buffer.compare(bytes.subarray(begin, end), damage.bytes.subarray(begin, end)) !== 0)
        mayDiffer.add(`${path} ${key}`);
  }
  const problems: string[] = [];
  for (const [path, { form, chunks }] of reading.arrays) {
    const before = good.arrays.get(path);
    if (before?.form !== form) problems.push(`'${path}': expected ${before?.form}, received ${form}`);
    for (const [key, chunk] of chunks) {
      const isSame = chunk === before?.chunks.get(key);
      const isExplained = mayDiffer.has(`${path} ${key}`)
        ? chunk !== "absent"
        : damage.scope === "cut" && chunk === "refused";
      if (!isSame && !isExplained)
        problems.push(`'${path}' ${key}: expected ${before?.chunks.get(key)}, received ${chunk}`);
    }
  }
  if (damage.scope === "chunks" && reading.arrays.size !== good.arrays.size)
    problems.push(`expected ${good.arrays.size} arrays, received ${reading.arrays.size}`);
  return problems;
}
