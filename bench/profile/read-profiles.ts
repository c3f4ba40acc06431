import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Attribution, type CallFrame, stageOf } from "./stages.js";

/** What one thread did in a window of time. */
export interface ThreadProfile {
  readonly isMain: boolean;
  /** Seconds of samples by stage, with those in which it waited. */
  readonly seconds: Readonly<Partial<Record<Attribution, number>>>;
}

/** A window of time on the clock of `process.hrtime()`, which all processes of a machine share. */
export interface TimeWindow {
  readonly beginMicros: number;
  readonly endMicros: number;
}

/** Now, on that clock. */
export function nowMicros(): number {
  return Number(process.hrtime.bigint() / 1_000n);
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: CallFrame;
    readonly children?: readonly number[];
  }[];
  /** Microseconds. */
  readonly startTime: number;
  readonly samples: readonly number[];
  /** From one sample to the next. */
  readonly timeDeltas: readonly number[];
}

/** CPU.DATE.TIME.PID.THREAD.NUMBER.cpuprofile */
const PROFILE_NAME = /^CPU\.\d+\.\d+\.\d+\.(\d+)\.\d+\.cpuprofile$/;

/** Reads what `node --cpu-prof` has written into a folder: a profile per thread. @throws Error where there is none. */
export function readProfiles(directory: string, window: TimeWindow): ThreadProfile[] {
  const profiles: ThreadProfile[] = [];
  for (const name of readdirSync(directory)) {
    const thread = PROFILE_NAME.exec(name)?.[1];
    if (thread === undefined) continue;
    const profile = JSON.parse(readFileSync(join(directory, name), "utf8")) as CpuProfile;
    profiles.push({ isMain: thread === "0", seconds: sumUp(profile, window, thread === "0") });
  }
  if (!profiles.some(({ isMain }) => isMain))
    throw new Error(`expected CPU profiles in ${directory}, received none`);
  return profiles;
}

function sumUp(
  { nodes, startTime, samples, timeDeltas }: CpuProfile,
  { beginMicros, endMicros }: TimeWindow,
  isMain: boolean,
) {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const parents = new Map(
    nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)),
  );
  const stages = new Map<number, Attribution>();
  const stageOfNode = (id: number): Attribution => {
    let stage = stages.get(id);
    if (stage === undefined) {
      const stack: CallFrame[] = [];
      for (let node: number | undefined = id; node !== undefined; node = parents.get(node))
        stack.push(frames.get(node)!);
      stage = stageOf(stack);
      // Only the main thread has requests to parse.
      if (stage === "parse" && !isMain) stage = "other";
      stages.set(id, stage);
    }
    return stage;
  };
  const seconds: Partial<Record<Attribution, number>> = {};
  let at = startTime;
  for (const [i, id] of samples.entries()) {
    at += timeDeltas[i]!;
    const length = timeDeltas[i + 1] ?? 0;
    if (at < beginMicros || at >= endMicros) continue;
    const stage = stageOfNode(id);
    seconds[stage] = (seconds[stage] ?? 0) + length / 1e6;
  }
  return seconds;
}
