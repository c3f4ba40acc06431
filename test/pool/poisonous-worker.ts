import type { ChunkOutcome } from "../../src/codec/make-chunk.js";
import type { ChunkTask, WorkerTask } from "../../src/pool/chunk-task.js";
import makeChunk from "../../workers/make-chunk.js";

/** The real worker, except for arrays whose name tells how it ends. */
export default async function makePoisonousChunk(asked: WorkerTask): Promise<unknown> {
  switch ((asked.task as ChunkTask).plan.path) {
    case "exits":
      process.exit(1);
      break;
    case "throws":
      await new Promise<ChunkOutcome>(() => setImmediate(() => JSON.parse("{")));
      break;
    case "hoards": {
      const hoard: number[][] = [];
      for (;;) hoard.push(new Array<number>(100_000).fill(1.5));
    }
    case "loops":
      for (;;);
  }
  return makeChunk(asked);
}
