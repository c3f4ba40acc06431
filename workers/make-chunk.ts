import Piscina, { move, transferableSymbol, valueSymbol } from "piscina";
import { isNumcodecsWornOut } from "../src/codec/zstd.js";
import type { TaskAnswer, WorkerData, WorkerTask } from "../src/pool/chunk-task.js";
import { callModule, createTaskRunner } from "../src/pool/run-chunk-task.js";
import { setSourceTimeout } from "../src/stores/file-calls.js";

const { withChecksums, sourceTimeoutMs } = Piscina.workerData as WorkerData;
setSourceTimeout(sourceTimeoutMs);

const run = createTaskRunner({ mayBlock: true, withChecksums });

/** Runs one task for piscina. The encoded bytes are moved, not copied. */
export default async function runTask({ task, into }: WorkerTask): Promise<unknown> {
  if ("module" in task) return callModule(task);
  if (isNumcodecsWornOut()) return { status: "worn-out" } satisfies TaskAnswer;
  const outcome = await run(task, into);
  if (outcome.status !== "encoded") return outcome;
  return move({ [transferableSymbol]: outcome.bytes.buffer, [valueSymbol]: outcome });
}
