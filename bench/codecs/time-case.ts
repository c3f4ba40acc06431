import type { CheckedCase } from "./check-case.js";
import { caseKey } from "./codec-cases.js";
import { OPERATIONS, type Operation } from "./codec-job.js";

/** One subject in one round of one case: a line of the raw results. */
export interface CodecRound {
  readonly case: string;
  readonly operation: Operation;
  readonly subject: string;
  /** From 0. */
  readonly round: number;
  readonly chunks: number;
  readonly seconds: number;
  /** Of decoded bytes. */
  readonly mbPerSecond: number;
  /** Whether what comes out is memory of what went in. */
  readonly isView: boolean;
}

export interface TimeOptions {
  readonly rounds: number;
  /** Of a measurement, without what runs before it to warm up. */
  readonly seconds: number;
}

/** Of the time of a measurement, what runs before it. */
const WARM_UP_SHARE = 0.25;

/**
 * Measures the subjects of a case in turn, the order turned round every other round. A measurement that is over after one
 * chunk has another chunk each round.
 * @throws Error where a process fails.
 */
export async function timeCase(checked: CheckedCase, options: TimeOptions): Promise<CodecRound[]> {
  const { codecCase, chunks, inputs, subjects } = checked;
  const { rounds, seconds } = options;
  const results: CodecRound[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const operation of OPERATIONS) {
      const all = subjects[operation];
      for (const { name, process } of round % 2 === 0 ? all : [...all].reverse()) {
        const answer = await process.ask({
          ...chunks,
          job: "time",
          operation,
          inputs: inputs[operation],
          seconds,
          warmUpSeconds: seconds * WARM_UP_SHARE,
          first: round,
        });
        if (!("chunks" in answer)) {
          const problem = "error" in answer ? answer.error : answer.missing;
          throw new Error(`${caseKey(codecCase)}: ${name}: ${problem}`);
        }
        const megabytes = (answer.chunks * chunks.decodedByteLength) / 1e6;
        results.push({
          case: caseKey(codecCase),
          operation,
          subject: name,
          round,
          chunks: answer.chunks,
          seconds: answer.seconds,
          mbPerSecond: megabytes / answer.seconds,
          isView: answer.isView,
        });
      }
    }
  }
  return results;
}
