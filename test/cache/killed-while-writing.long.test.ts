import { once } from "node:events";
import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { createRandom } from "../../bench/random.js";
import { effort } from "../effort.js";
import { childrenOf } from "../processes/process-table.js";
import { EXPECTED_ROWS, prepareRows, ROW_BYTES, ROWS, serveRows } from "./serve-rows.js";

const KILLS = 4 + effort(10);
const KILLS_OF_SEVERAL = 1 + effort(5);

/** A third of all chunks fits: the others displace them. */
const CACHE_BYTES = (ROWS * ROW_BYTES) / 3;
const CONNECTIONS = 8;

interface Tally {
  hits: number;
  misses: number;
  /** Descriptions of wrong answers. */
  readonly wrong: string[];
}

/** Requests one row after the other until the server is gone, or `until` is true. Some rows are requested more often. */
async function hammer(port: number, random: () => number, tally: Tally, until: () => boolean): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    while (!until()) {
      const row = Math.floor(random() ** 2 * ROWS);
      const asking = request({ agent, host: "127.0.0.1", port, path: `/datasets/d/zarr/v/${row}.0` });
      asking.end();
      const [answer] = await once(asking, "response");
      const parts: Buffer[] = [];
      for await (const part of answer) parts.push(part);
      const bytes = Buffer.concat(parts);
      if (answer.statusCode !== 200 || !bytes.equals(EXPECTED_ROWS[row] as Buffer)) {
        tally.wrong.push(`row ${row}: ${answer.statusCode}, ${bytes.length} bytes`);
      } else if (answer.headers["x-cache"] === "HIT") tally.hits++;
      else tally.misses++;
    }
  } catch (error) {
    // Killed during an answer: there was none.
    if (!["ECONNRESET", "ECONNREFUSED", "EPIPE"].includes((error as NodeJS.ErrnoException).code ?? ""))
      throw error;
  } finally {
    agent.destroy();
  }
}

/** Waits until so many more rows were answered, since starting takes longest. Not called if the kill is to hit the start. */
async function answered(tally: Tally, more: number): Promise<void> {
  const enough = tally.hits + tally.misses + more;
  for (let waitedMs = 0; tally.hits + tally.misses < enough && waitedMs < 20_000; waitedMs += 10)
    await sleep(10);
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}

t.test(`killed ${KILLS} times while it writes its cache, it never answers a wrong byte`, async (t) => {
  const directory = await prepareRows(t, CACHE_BYTES);
  const random = createRandom(4711);
  const tally: Tally = { hits: 0, misses: 0, wrong: [] };
  const said: string[] = [];
  for (let cycle = 0; cycle < KILLS; cycle++) {
    const { run, port } = await serveRows(directory);
    const asking = Array.from({ length: CONNECTIONS }, () => hammer(port, random, tally, () => false));
    if (cycle % 4 > 0) await answered(tally, CONNECTIONS);
    await sleep(random() * 300);
    run.child.kill("SIGKILL");
    await Promise.all([run.ended, ...asking]);
    said.push(...run.stderr().split("\n").filter(Boolean));
  }
  t.same(tally.wrong, []);
  t.ok(tally.hits > KILLS && tally.misses > KILLS, `${tally.hits} hits, ${tally.misses} misses`);
  for (const line of said) t.match(line, /a process died soon after it had opened it; it starts over/);
});

t.test("killed one by one or all at once, several processes never answer a wrong byte", async (t) => {
  const directory = await prepareRows(t, CACHE_BYTES);
  const random = createRandom(42);
  const tally: Tally = { hits: 0, misses: 0, wrong: [] };
  for (let cycle = 0; cycle < KILLS_OF_SEVERAL; cycle++) {
    const { run, port } = await serveRows(directory, ["--processes", "2"]);
    const pid = run.child.pid as number;
    let isOver = false;
    // A client whose process is killed asks the other one.
    const asking = Array.from({ length: CONNECTIONS }, async () => {
      while (!isOver) await hammer(port, random, tally, () => isOver);
    });
    if (cycle % 4 > 0) await answered(tally, CONNECTIONS);
    await sleep(20 + random() * 200);
    kill(childrenOf(pid)[Math.floor(random() * 2)] as number);
    await sleep(50 + random() * 200);
    const all = childrenOf(pid);
    if (cycle % 2 === 0) run.child.kill("SIGKILL");
    for (const child of all) kill(child);
    isOver = true;
    await Promise.all(asking);
    run.child.kill("SIGKILL");
    // Processes that were being started as replacements end when their parent is gone.
    await run.ended;
  }
  t.same(tally.wrong, []);
  t.ok(
    tally.hits > KILLS_OF_SEVERAL && tally.misses > KILLS_OF_SEVERAL,
    `${tally.hits} hits, ${tally.misses} misses`,
  );
});
