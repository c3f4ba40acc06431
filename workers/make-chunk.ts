import Piscina, { move, transferableSymbol, valueSymbol } from "piscina";
import { isNumcodecsWornOut } from "../src/codec/zstd.js";
import { movedMemory, type TaskAnswer, type WorkerData, type WorkerTask } from "../src/pool/chunk-task.js";
import { callModule, createTaskRunner } from "../src/pool/run-chunk-task.js";
import { setSourceTimeout } from "../src/stores/file-calls.js";

const { withChecksums, sourceTimeoutMs } = Piscina.workerData as WorkerData;
setSourceTimeout(sourceTimeoutMs);

const run = createTaskRunner({ mayBlock: true, withChecksums });

/** Runs one task for piscina. The encoded bytes are moved, not copied. */
export default async function runTask({ task, into }: WorkerTask): Promise<unknown> {
  if ("module" in task) return callModule(task);
  if (isNumcodecsWornOut())
    return moving({ status: "worn-out", task } satisfies TaskAnswer, movedMemory({ task, into: undefined }));
  const outcome = await run(task, into);
  const made = [outcome, ...(outcome.others ?? [])];
  return moving(
    outcome,
    made.flatMap((each) => (each.status === "encoded" ? [each.bytes.buffer] : [])),
  );
}

function moving(answer: TaskAnswer, memory: readonly ArrayBuffer[]): unknown {
  return memory.length === 0 ? answer : move({ [transferableSymbol]: memory, [valueSymbol]: answer });
}
