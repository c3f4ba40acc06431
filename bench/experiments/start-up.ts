import { fetchAnswer } from "../fetch-answer.js";
import { readProcessCost } from "../process-cost.js";
import { readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish, type ZpublishSettings } from "../start-zpublish.js";
import { median } from "../statistics.js";

/** What starting a server took, and what it then had in memory. */
export interface StartUp {
  readonly readySeconds: number;
  /** Until it was ready; undefined where the system does not say. */
  readonly cpuSeconds: number | undefined;
  /** When it was ready, beyond the cache's map; undefined where the system does not say. */
  readonly residentBytes: number | undefined;
}

/** One answer, from asking to its last byte. */
export interface TimedAnswer {
  readonly milliseconds: number;
  readonly body: Buffer;
}

/** A {@link StartUp} up to the first answer. */
export interface ColdStart {
  readonly readySeconds: number;
  readonly answeredSeconds: number;
  /** Until then; undefined where the system does not say. */
  readonly cpuSeconds: number | undefined;
}

/** Starts a server, asks for its datasets, and ends it. @throws Error where it does not start or answer. */
export async function measureColdStart(settings: ZpublishSettings): Promise<ColdStart> {
  const began = performance.now();
  const { readySeconds, baseUrl, pid, stop } = await startZpublish(settings);
  try {
    await timeAnswer(baseUrl, "/datasets");
    const answeredSeconds = (performance.now() - began) / 1_000;
    return { readySeconds, answeredSeconds, cpuSeconds: readProcessCost(pid)?.cpuSeconds };
  } finally {
    await stop();
  }
}

/** Starts a server, calls `use` with it, and ends it. @throws Error where it does not start, and what `use` throws. */
export async function withStartedServer<Result>(
  settings: { readonly datasets: Readonly<Record<string, unknown>>; readonly scratch: string },
  use: (server: RunningZpublish, startUp: StartUp) => Promise<Result>,
): Promise<Result> {
  const server = await startZpublish(settings);
  try {
    return await use(server, {
      readySeconds: server.readySeconds,
      cpuSeconds: readProcessCost(server.pid)?.cpuSeconds,
      residentBytes: readResidentMemory(server.pid)?.otherBytes,
    });
  } finally {
    await server.stop();
  }
}

/** @throws Error for another status than 200. */
export async function timeAnswer(
  baseUrl: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<TimedAnswer> {
  const began = performance.now();
  const { status, body } = await fetchAnswer(baseUrl, path, headers);
  if (status !== 200) throw new Error(`${path}: expected status 200, received ${status}`);
  return { milliseconds: performance.now() - began, body };
}

/** The median of what is known, from cells of `StartUp`s and the like. */
export function medianOf<Item>(
  items: readonly Item[],
  pick: (item: Item) => number | undefined,
): number | undefined {
  return median(items.map(pick).filter((value) => value !== undefined));
}
