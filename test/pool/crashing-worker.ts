import { existsSync, openSync, writeFileSync } from "node:fs";
import type { ChunkTask, TaskAnswer, WorkerTask } from "../../src/pool/chunk-task.js";

/** A worker that does what the first coordinate says. The array's path is that of a file, which tells whether it ran before. */
export default async function makeChunk({ task }: WorkerTask): Promise<TaskAnswer> {
  const { plan, chunkCoords } = task as ChunkTask;
  switch (chunkCoords[0]) {
    case 1:
      throw new TypeError("thrown in a worker");
    case 2:
      process.exit(1);
      break;
    case 3:
      if (!existsSync(plan.path)) {
        writeFileSync(plan.path, "");
        return { status: "worn-out", task: task as ChunkTask };
      }
      break;
    case 4:
      await new Promise((resolve) => setTimeout(resolve, 60_000));
      break;
    case 5:
      setTimeout(() => {
        throw new Error("thrown in a timer");
      });
      await new Promise((resolve) => setTimeout(resolve, 1000));
      break;
    case 6: {
      const hoard: number[][] = [];
      for (;;) hoard.push(new Array<number>(100_000).fill(1.5));
    }
    case 7:
      for (;;);
    case 8:
      // Without a writer: the thread waits in a system call, where it cannot be terminated.
      openSync(plan.path, "r");
      break;
    case 9:
      if (!existsSync(plan.path)) {
        writeFileSync(plan.path, "");
        process.exit(1);
      }
      break;
    case 10:
      await new Promise((resolve) => setTimeout(resolve, chunkCoords[1]));
      break;
  }
  return { status: "absent" };
}
