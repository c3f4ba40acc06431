import { rename, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import {
  AWAY_DATASET,
  CHAOS_ARRAYS,
  type ChaosArray,
  type ChaosKey,
  fileCount,
  filesOf,
  REMOTE_DATASET,
} from "./chaos-arrays.js";
import { REFRESH_SECONDS, SOURCE_TIMEOUT_SECONDS } from "./chaos-server.js";
import type { WriteMode } from "./chaos-store.js";
import { DAMAGED } from "./judge.js";
import { ABSENT } from "./row-values.js";
import { type ChaosEvent, pick, type Stage } from "./stage.js";

/** Until new metadata is served at the latest: a period, and a look that takes its time on a busy machine. */
const REFRESH_GRACE_MS = REFRESH_SECONDS * 1_000 + 4_000;
/** Until another state of a remote file is served: an answer is believed for a period, and may take until the time limit. */
const REMOTE_GRACE_MS = (REFRESH_SECONDS + SOURCE_TIMEOUT_SECONDS) * 1_000 + 1_000;
/** A writer in place that pauses for longer cannot be told from one that has finished: times of files are in steps of up to so much. */
const NOTICED_PAUSE_MS = 10;
/** An excuse that is taken back. */
const NEVER = Number.NEGATIVE_INFINITY;

/** Does something to a file to which nothing else happens meanwhile. */
async function withFile(
  { random, busyFiles }: Stage,
  use: (array: ChaosArray, file: number) => Promise<void>,
): Promise<void> {
  const { array, file } = pickFile(random, busyFiles);
  const id = fileId(array, file);
  busyFiles.add(id);
  try {
    await use(array, file);
  } finally {
    busyFiles.delete(id);
  }
}

function pickFile(random: () => number, busy: ReadonlySet<string>): { array: ChaosArray; file: number } {
  for (;;) {
    const array = pick(
      random,
      CHAOS_ARRAYS.filter(({ isRewritten, dataset }) => isRewritten && dataset !== AWAY_DATASET),
    );
    const file = Math.floor(random() * fileCount(array));
    if (!array.absentFiles.includes(file) && !busy.has(fileId(array, file))) return { array, file };
  }
}

function fileId(array: ChaosArray, file: number): string {
  return `${array.number}/${file}`;
}

function nextVersion({ versions }: Stage, array: ChaosArray, file: number): number {
  const id = fileId(array, file);
  const version = (versions.get(id) ?? 0) + 1;
  versions.set(id, version);
  return version;
}

/** Of which keys a file is a part. */
function isOf(array: ChaosArray, file: number): (key: ChaosKey) => boolean {
  return (key) => key.array === array && key.kind === "chunk" && filesOf(key).includes(file);
}

function graceOf({ dataset }: ChaosArray): number {
  return dataset === REMOTE_DATASET ? REMOTE_GRACE_MS : 0;
}

/** A chunk that changes while it is read may be given up: 503, or 500 where it looked corrupt each time. */
async function write(stage: Stage, array: ChaosArray, file: number, mode: WriteMode): Promise<void> {
  const { judge, store } = stage;
  const version = nextVersion(stage, array, file);
  const settleChange = judge.file(array, file).begin(version);
  const isPart = isOf(array, file);
  const settle = judge.excuse(`write (${mode})`, mode === "replace" ? ["503"] : ["500", "503"], isPart);
  const settlePause =
    mode === "in place" ? judge.excuse("a writer in place paused", ["torn"], isPart) : undefined;
  const pausedMs = await store.write(array, file, version, mode);
  settleChange(graceOf(array));
  settle(250 + graceOf(array));
  settlePause?.(pausedMs > NOTICED_PAUSE_MS ? 250 : NEVER);
}

/** Files that are written again, all the time. */
export const REWRITES: readonly ChaosEvent[] = (["replace", "in place", "truncating"] as const).map(
  (mode, i) => ({
    name: `chunk rewritten (${mode})`,
    weight: [6, 3, 1][i]!,
    happens: (stage) => withFile(stage, (array, file) => write(stage, array, file, mode)),
  }),
);

/** What else happens to stores, one after the other. */
export const FILE_EVENTS: readonly ChaosEvent[] = [
  {
    name: "chunk truncated for a while",
    weight: 6,
    happens: (stage) =>
      withFile(stage, async (array, file) => {
        const { judge, store, random } = stage;
        const { size } = await stat(store.fileOf(array, file));
        const settle = judge.file(array, file).begin(DAMAGED);
        await store.truncate(array, file, Math.floor(random() * size));
        settle(graceOf(array));
        await sleep(200 + random() * 600);
        await write(stage, array, file, "replace");
      }),
  },
  {
    name: "chunk removed for a while",
    weight: 6,
    happens: (stage) =>
      withFile(stage, async (array, file) => {
        const { judge, store, random } = stage;
        const settle = judge.file(array, file).begin(ABSENT);
        await store.remove(array, file);
        settle(graceOf(array));
        await sleep(200 + random() * 600);
        await write(stage, array, file, "replace");
      }),
  },
  {
    name: "array of another length",
    weight: 5,
    async happens({ judge, store, random }) {
      const array = pick(
        random,
        CHAOS_ARRAYS.filter(({ fewestRows }) => fewestRows !== undefined),
      );
      const fewest = array.fewestRows!;
      const rows = fewest + Math.floor(random() * (array.rows - fewest + 1));
      const settle = judge.rows.get(array)!.begin(rows);
      await store.writeMetadata(array, rows);
      settle(REFRESH_GRACE_MS);
      await sleep(REFRESH_GRACE_MS / 2);
    },
  },
  {
    name: "dataset gone for a while",
    weight: 3,
    async happens({ judge, store, random }) {
      const isAway = (key: ChaosKey) => key.dataset === AWAY_DATASET;
      const settle = judge.excuse("dataset gone", ["500"], isAway);
      const location = store.location(AWAY_DATASET);
      await rename(location, `${location}.gone`);
      await sleep(500 + random() * 2_500);
      await rename(`${location}.gone`, location);
      // Metadata that could not be read is tried again within a period; a thing found refused is looked at anew.
      settle(REFRESH_GRACE_MS);
      await sleep(1_000);
    },
  },
];
