import { callModule, createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { createValues, type ValuesParts } from "../../src/values/create-values.js";

/** Creates what reads values in this thread. */
export function inlineValues(parts: Partial<ValuesParts> = {}) {
  const run = createTaskRunner();
  return createValues({ makeChunk: (task) => run(task), callModule, ...parts });
}
