import { type FieldStore, openFieldStore } from "../data/bench-data.js";
import type { ExperimentContext } from "./experiment.js";

/** Elements along each side of a chunk of 1 MiB. */
export const MIB_SIDE = 512;

/** The field in chunks of 1 MiB, about 590 KB stored; made where it is not there yet. */
export function openMibStore(context: ExperimentContext, steps: number): Promise<FieldStore> {
  return openFieldStore("mib", MIB_SIDE, steps, dataProgress(context), context.parent);
}

/** Says how far the data are. */
export function dataProgress({ onProgress }: ExperimentContext): (done: number) => void {
  return (done) => onProgress(0, `making data, ${Math.floor(done * 100)} %`);
}
