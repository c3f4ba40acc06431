import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { madeChunks, NOISE_CHUNKS, serveNoise, writeNoise } from "../support/servers/program-stores.js";
import { openConnection, type RawAnswer, requestText } from "../support/servers/raw-request.js";
import { connectTo, type Program } from "../support/servers/start-program.js";

const skip = process.platform === "linux" ? false : "only Linux spreads connections";
t.setTimeout(600_000);

function chunkPath(index: number): string {
  return `/datasets/noise/zarr/noise/${index}.0`;
}

async function askEach(program: Program, connections: number, path: string): Promise<RawAnswer[]> {
  const opened = await Promise.all(Array.from({ length: connections }, () => openConnection(program.port)));
  for (const connection of opened) connection.send(requestText(path));
  const answers = await Promise.all(opened.map((connection) => connection.answer()));
  for (const { socket } of opened) socket.destroy();
  return answers;
}

t.test("a chunk that many clients request at once is made once in each process", { skip }, async (t) => {
  const location = await writeNoise(t);
  for (const args of [[], ["--no-cache"]]) {
    // Without a cache, requests that arrive after it is made make it again: on a busy machine a few of the 128 may.
    const most = args.length === 0 ? 1 : 4;
    const program = await serveNoise(t, location, { args, level: 22 });
    for (const index of [0, 1, 2]) {
      const answers = await askEach(program, 128, chunkPath(index));
      t.ok(answers.every(({ status }) => status === 200));
      t.ok(answers.every(({ body }) => body.equals(answers[0]!.body)));
      t.ok(answers.every(({ headers }) => headers.etag === answers[0]!.headers.etag));
      const made = madeChunks(program).filter((chunk) => chunk === `noise ${index}.0`).length;
      t.ok(
        made >= 1 && made <= most * program.pids().length,
        `chunk ${index} ${args} was made ${made} times`,
      );
    }
    program.run.child.kill("SIGTERM");
    t.equal(await program.run.ended, 0);
  }
});

t.test("a chunk that one process has put into the cache is a hit in another", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t));
  const [first, second] = await Promise.all(program.pids().map((pid) => connectTo(t, program, pid)));
  const made: RawAnswer[] = [];
  for (let index = 0; index < NOISE_CHUNKS; index++) {
    first!.send(requestText(chunkPath(index)));
    made.push(await first!.answer());
  }
  t.ok(made.every(({ headers }) => headers["x-cache"] === "MISS"));
  const writes = /^zpublish_cache_writes_total\{content="chunks",process="[12]"\} (\d+)$/gm;
  await until(async () => {
    const text = await (await fetch(`${program.url}/metrics`)).text();
    return Math.max(...[...text.matchAll(writes)].map(([, count]) => Number(count))) >= NOISE_CHUNKS;
  });
  for (const [index, { headers, body }] of made.entries()) {
    second!.send(requestText(chunkPath(index)));
    const found = await second!.answer();
    t.equal(found.headers["x-cache"], "HIT");
    t.equal(found.headers.etag, headers.etag);
    t.ok(found.body.equals(body));
  }
});

t.test("a chunk rewritten in place is not served stale by any process", { skip }, async (t) => {
  const location = await writeNoise(t);
  const program = await serveNoise(t, location);
  const connections = await Promise.all(program.pids().map((pid) => connectTo(t, program, pid)));
  const seen = new Set<string>();
  for (let round = 0; round < 5; round++) {
    await writeFile(join(location, "noise", "0.0"), Buffer.alloc(2 ** 18, round + 1));
    for (const connection of connections) connection.send(requestText(chunkPath(0)));
    const answers = await Promise.all(connections.map((connection) => connection.answer()));
    for (const { status, headers, body } of answers) {
      t.equal(status, 200);
      t.equal(headers.etag, answers[0]!.headers.etag);
      t.ok(body.equals(answers[0]!.body));
    }
    t.notOk(seen.has(answers[0]!.headers.etag as string));
    seen.add(answers[0]!.headers.etag as string);
  }
});

t.test("chunks whose clients have left are not made", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t), { args: ["--workers", "1", "--no-cache"] });
  const leaving = await Promise.all(
    Array.from({ length: NOISE_CHUNKS - 1 }, async (_, index) => {
      const connection = await openConnection(program.port);
      connection.send(requestText(chunkPath(index)));
      return connection;
    }),
  );
  await until(() => madeChunks(program).length > 0);
  for (const { socket } of leaving) socket.destroy();
  await delay(20);
  const [answer] = await askEach(program, 1, chunkPath(NOISE_CHUNKS - 1));
  t.equal(answer!.status, 200);
  t.ok(
    madeChunks(program).length < NOISE_CHUNKS,
    `${madeChunks(program).length} of ${NOISE_CHUNKS} were made`,
  );
});
