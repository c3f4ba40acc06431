import { existsSync } from "node:fs";
import { unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ChaosKey, FLAKY_DATASET, POISON_DATASET } from "./chaos-arrays.js";
import { CHUNK_TIMEOUT_SECONDS } from "./chaos-server.js";
import { DEATHS } from "./fault-preload.js";
import type { Judge } from "./judge.js";
import type { ChaosEvent } from "./stage.js";
import { now } from "./timeline.js";

/** How long a chunk is kept away from workers that one has died of. */
const KEPT_AWAY_MS = 62_000;
/** How long a worker is waited for that takes an order to die. */
const DEATH_WAIT_MS = 3_000;

/** Workers that die, and a source that fails: `fault-preload` does it. */
export const FAULT_EVENTS: readonly ChaosEvent[] = [
  ...DEATHS.map(
    (death): ChaosEvent => ({
      name: `worker killed (${death})`,
      weight: 2,
      async happens({ judge, server, note }) {
        const file = join(server.faults, `kill-${death}`);
        const isMade = (key: ChaosKey) => key.kind === "chunk" && key.array?.encoding !== undefined;
        const settle = judge.excuse(`worker killed (${death})`, ["500"], isMade, KEPT_AWAY_MS);
        await writeFile(file, "");
        const deadline = now() + DEATH_WAIT_MS;
        while (existsSync(file) && now() < deadline) await sleep(20);
        // Gone where a worker has taken it; otherwise nothing was made meanwhile.
        const isTaken = await unlink(file).then(
          () => false,
          () => true,
        );
        if (!isTaken) note(`no worker took the order to die (${death})`);
        settle(CHUNK_TIMEOUT_SECONDS * 1_000 + 1_500);
        return isTaken ? undefined : false;
      },
    }),
  ),
  ...(["error", "slow"] as const).map(
    (fault): ChaosEvent => ({
      name: `source fails (${fault})`,
      weight: 2,
      async happens({ judge, server, random }) {
        const file = join(server.faults, `source-${fault}`);
        const isFlaky = ({ kind, dataset }: ChaosKey) => kind === "chunk" && dataset === FLAKY_DATASET;
        // A worker that waits too long for a file is ended, as for any other reason.
        const lastsMs = fault === "slow" ? KEPT_AWAY_MS : 0;
        const settle = judge.excuse(`source fails (${fault})`, ["500", "503"], isFlaky, lastsMs);
        await writeFile(file, "");
        await sleep(500 + random() * 2_000);
        await unlink(file);
        settle(fault === "slow" ? 15_000 : 500);
      },
    }),
  ),
];

/** What a poisonous chunk is answered with, always; or nobody had tried it when its time was over. */
export function excusePoison(judge: Judge): void {
  judge.excuse(
    "poisonous chunk",
    ["500", "503"],
    ({ kind, dataset }) => kind === "chunk" && dataset === POISON_DATASET,
  );
}
