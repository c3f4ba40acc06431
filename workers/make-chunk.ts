import Piscina, { move, transferableSymbol, valueSymbol } from "piscina";
import { setKernelUse } from "../src/codec/kernel/kernel-use.js";
import { isNumcodecsWornOut } from "../src/codec/numcodecs-module.js";
import type { ChunkOutcome, WorkerData, WorkerTask } from "../src/pool/chunk-task.js";
import { createTaskRunner } from "../src/pool/run-chunk-task.js";
import { WORN_OUT_EXIT_CODE } from "../src/pool/worn-out-exit-code.js";
import { setSourceTimeout } from "../src/source/source-timeout.js";

const { useKernel, withChecksums, sourceTimeoutMs } = Piscina.workerData as WorkerData;
setKernelUse(useKernel);
setSourceTimeout(sourceTimeoutMs);

const run = createTaskRunner({ mayBlock: true, withChecksums });

/** What piscina calls for every task; the encoded bytes go back without being copied. */
export default async function makeChunk({ task, into }: WorkerTask): Promise<unknown> {
  // The pool gives the task to another worker; nothing else gives WebAssembly memory back.
  if (isNumcodecsWornOut()) process.exit(WORN_OUT_EXIT_CODE);
  const outcome: ChunkOutcome = await run(task, into);
  if (outcome.status !== "encoded") return outcome;
  return move({ [transferableSymbol]: outcome.bytes.buffer, [valueSymbol]: outcome });
}
