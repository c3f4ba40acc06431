import { statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { itemSizeOf, typedChunk } from "../data/typed-field.js";
import { type CodecCase, caseKey } from "./codec-cases.js";
import type { ChunksJob, CodecAnswer, Operation } from "./codec-job.js";
import { type CodecSubject, NATIVE, NUMCODECS_JS, OURS } from "./codec-subjects.js";

/** Chunks of a type in files. */
export interface TruthFiles {
  /** Of each. */
  readonly byteLength: number;
  readonly files: readonly string[];
}

/** A case that is ready to be timed. */
export interface CheckedCase {
  readonly codecCase: CodecCase;
  readonly chunks: Omit<ChunksJob, "inputs">;
  /** What goes in: everybody encodes the same bytes, and everybody decodes the same. */
  readonly inputs: Readonly<Record<Operation, readonly string[]>>;
  /** Who takes part. */
  readonly subjects: Readonly<Record<Operation, readonly CodecSubject[]>>;
  /** Encoded bytes of all chunks, by subject. */
  readonly sizes: Readonly<Record<string, number>>;
  /** Who was left out, and why. */
  readonly notes: readonly string[];
}

/** Writes chunks of a type into a folder. */
export function writeTruth(
  type: CodecCase["type"],
  count: number,
  byteLength: number,
  folder: string,
): TruthFiles {
  const files = Array.from({ length: count }, (_, i) => {
    const file = join(folder, `decoded-${type.slice(1)}-${i}`);
    writeFileSync(file, typedChunk(type, i, byteLength));
    return file;
  });
  return { byteLength, files };
}

/**
 * Has everybody encode the chunks of a case, and everybody decode what everybody has encoded: whatever is timed has
 * given the right bytes before.
 * @param folder For encoded chunks, which the next case overwrites.
 * @throws Error where zpublish, Node.js or native numcodecs is wrong; numcodecs.js is left out with a note.
 */
export async function checkCase(
  codecCase: CodecCase,
  truth: TruthFiles,
  subjects: readonly CodecSubject[],
  folder: string,
): Promise<CheckedCase> {
  const { codec, type, operations } = codecCase;
  const chunks = { codec, dtype: type, itemSize: itemSizeOf(type), decodedByteLength: truth.byteLength };
  const problems: string[] = [];
  /** @param about Who may be the cause of it. @returns Whether it is done. */
  const isDone = (answer: CodecAnswer, what: string, about: readonly string[]): boolean => {
    if (!("error" in answer)) return !("missing" in answer);
    const problem = `${caseKey(codecCase)}: ${what}: ${answer.error}`;
    if (!about.includes(NUMCODECS_JS)) throw new Error(problem);
    problems.push(problem);
    return false;
  };

  const encoded = new Map<string, readonly string[]>();
  if (operations.includes("encode")) {
    for (const { name, process } of subjects) {
      const outputs = truth.files.map((_, i) => join(folder, `encoded-${name.replace(/\W+/g, "-")}-${i}`));
      const answer = await process.ask({ ...chunks, job: "encode", inputs: truth.files, outputs });
      if (isDone(answer, `${name} encodes`, [name])) encoded.set(name, outputs);
    }
  }
  // Bytes that a codec leaves as they are need nobody who encodes them.
  const streams = encoded.size > 0 ? encoded : new Map([["nobody", truth.files]]);
  const decoders = new Set<string>();
  for (const { name, process } of subjects) {
    for (const [from, inputs] of streams) {
      const answer = await process.ask({ ...chunks, job: "check", inputs, expected: truth.files });
      if (isDone(answer, `${name} decodes what ${from} encoded`, [name, from])) decoders.add(name);
    }
  }

  const isIn = ({ name }: CodecSubject) => problems.length === 0 || name !== NUMCODECS_JS;
  return {
    codecCase,
    chunks,
    inputs: {
      encode: truth.files,
      decode: encoded.get(NATIVE) ?? encoded.get(OURS) ?? encoded.get(NUMCODECS_JS) ?? truth.files,
    },
    subjects: {
      encode: subjects.filter((subject) => encoded.has(subject.name) && isIn(subject)),
      decode: subjects.filter((subject) => decoders.has(subject.name) && isIn(subject)),
    },
    sizes: Object.fromEntries([...encoded].map(([name, files]) => [name, totalSize(files)])),
    notes: problems.map((problem) => `Without ${NUMCODECS_JS} where it is wrong: ${problem}.`),
  };
}

function totalSize(files: readonly string[]): number {
  return files.reduce((sum, file) => sum + statSync(file).size, 0);
}
