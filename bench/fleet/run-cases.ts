import { Worker } from "node:worker_threads";
import type { FleetCase, FleetOutcome } from "./fleet-case.js";

/**
 * Runs simulations on several threads. A simulation does not depend on the thread that runs it.
 * @returns Outcomes in the order of the cases.
 */
export async function runCases(
  cases: readonly FleetCase[],
  threads: number,
  onDone: (done: number) => void,
): Promise<FleetOutcome[]> {
  const outcomes: FleetOutcome[] = [];
  // The long ones first, so that no thread is left with one at the end.
  const order = cases.map((_, i) => i).sort((a, b) => requestsOf(cases[b]!) - requestsOf(cases[a]!));
  let done = 0;
  await Promise.all(
    Array.from({ length: Math.min(threads, cases.length) }, async () => {
      const worker = new Worker(new URL("fleet-worker.js", import.meta.url));
      try {
        for (let next = order.shift(); next !== undefined; next = order.shift()) {
          outcomes[next] = await ask(worker, cases[next]!);
          onDone(++done / cases.length);
        }
      } catch (error) {
        order.length = 0;
        throw error;
      } finally {
        await worker.terminate();
      }
    }),
  );
  return outcomes;
}

function requestsOf({ cachedChunks, requestsPerChunk }: FleetCase): number {
  return cachedChunks * requestsPerChunk;
}

function ask(worker: Worker, each: FleetCase): Promise<FleetOutcome> {
  return new Promise((resolve, reject) => {
    worker.once("error", reject);
    worker.once("message", (outcome: FleetOutcome) => {
      worker.off("error", reject);
      resolve(outcome);
    });
    worker.postMessage(each);
  });
}
