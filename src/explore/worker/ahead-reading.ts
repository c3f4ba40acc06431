import type { AheadRequest } from "../protocol.js";
import { type ChunkJob, PRIORITY } from "./chunk-queue.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { planFrame } from "./picture/show-picture.js";
import type { AxisReader } from "./read-axis.js";

/**
 * Reads the chunks of the next frames, so that playing waits for none. A chunk that fails ahead of time is shown as failed once its
 * frame is shown.
 * @param onStart Called when chunks are asked for: readings before this one may end without cancelling what both want.
 * @returns The steps of which all chunks are read.
 * @throws ReadFailure
 */
export async function readAhead(
  session: DatasetSession,
  axes: AxisReader,
  { show, along, steps }: AheadRequest,
  signal: AbortSignal,
  onStart: () => void,
): Promise<number[]> {
  const { queue } = session;
  const frames: { readonly step: number; readonly jobs: readonly ChunkJob<Chunk>[] }[] = [];
  let bytes = 0;
  for (const step of steps) {
    // Further frames would push the first ones out of the cache.
    if (bytes > queue.maxBytes / 2) break;
    const selection = { ...show.selection, at: show.selection.at.with(along, step) };
    const { fine, cost } = await planFrame(session, axes, { ...show, selection });
    bytes += cost.bytes;
    frames.push({ step, jobs: fine.chunks.map(({ job }) => job) });
  }
  const jobs = new Map(frames.flatMap(({ jobs }) => jobs.map((job) => [job.key, job] as const)));
  const unread = Array.from(jobs.values()).filter(({ key }) => !queue.has(key));
  const readings = unread.map((job) => queue.read(job, PRIORITY.ahead, signal));
  onStart();
  await Promise.allSettled(readings);
  return frames.filter(({ jobs }) => jobs.every(({ key }) => queue.has(key))).map(({ step }) => step);
}
