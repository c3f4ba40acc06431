import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { ARRAY_CHUNKS, chunkOf, writeArray } from "../support/servers/program-stores.js";
import { openConnection, type RawAnswer, requestText } from "../support/servers/raw-request.js";
import { startSmall } from "../support/servers/start-program.js";

t.setTimeout(600_000);

const COUNTS = process.platform === "linux" ? [1, 3] : [1];
/** Chunks twice as long, so that they are made in workers. */
const RECHUNKED = { encoding: { chunks: [8_192] } };

for (const processes of COUNTS) {
  t.test(`no request fails while HUP changes everything, with ${processes} processes`, async (t) => {
    const program = await startSmall(t, {
      processes,
      async config(directory) {
        await Promise.all(
          ["stable", "packed", "extra", "other"].map((name, seed) => writeArray(join(directory, name), seed)),
        );
        return { datasets: { stable: "stable", packed: { location: "packed", ...RECHUNKED } } };
      },
    });
    const get = (path: string) => fetch(program.url + path);
    const indices = Array.from({ length: ARRAY_CHUNKS }, (_, index) => index);
    const longChunk = (index: number) => Buffer.concat([chunkOf(1, 2 * index), chunkOf(1, 2 * index + 1)]);
    const targets = [
      ...indices.map((index) => bodyIs(`/datasets/stable/zarr/v/${index}`, chunkOf(0, index))),
      // Its chunks are as long as one configuration or the other says.
      ...indices
        .slice(0, ARRAY_CHUNKS / 2)
        .map((index) => bodyIs(`/datasets/packed/zarr/v/${index}`, longChunk(index), chunkOf(1, index))),
      // One id, two places.
      ...indices.map((index) =>
        bodyIsOrAbsent(`/datasets/extra/zarr/v/${index}`, chunkOf(2, index), chunkOf(3, index)),
      ),
      textHas("/datasets", "stable"),
      textHas("/datasets/stable/info", "seed"),
      textHas("/datasets/stable/zarr/.zmetadata", "seed"),
      textHas("/", "stable"),
      textHas("/openapi.json", "openapi"),
    ];
    const hammer = await startHammer(program.port, () => targets);
    t.teardown(() => hammer.stop());
    const etag = (await get("/datasets/stable/zarr/v/0")).headers.get("etag");

    const datasets = { stable: "stable", packed: { location: "packed", ...RECHUNKED } };
    const configs: readonly (readonly [object, string[]])[] = [
      [{ datasets: { extra: "extra", ...datasets } }, ["extra", "stable", "packed"]],
      [{ datasets, title: "another title", corsOrigin: "https://example.org" }, ["stable", "packed"]],
      [{ datasets: { stable: "stable", packed: "packed", extra: "other" } }, ["stable", "packed", "extra"]],
      [
        { datasets: { stable: { location: "stable", cacheControl: "no-cache" }, packed: "packed" } },
        ["stable", "packed"],
      ],
      [{ datasets, plugins: { module_version: false }, maxRequests: 500 }, ["stable", "packed"]],
    ];
    for (const [index, [config, ids]] of configs.entries()) {
      await program.write(config);
      await writeFile(join(program.directory, "stable", ".zattrs"), JSON.stringify({ seed: index }));
      t.equal(await program.reload(), "reloaded");
      t.same(await (await get("/datasets")).json(), ids);
      await hammer.more(30);
      if (index === 1) {
        const { headers } = await get("/datasets");
        t.equal(headers.get("access-control-allow-origin"), "https://example.org");
        t.match(await (await get("/")).text(), "another title");
      }
      if (index === 3) {
        t.equal((await get("/datasets/stable/zarr/v/0")).headers.get("cache-control"), "no-cache");
      }
    }
    t.equal((await get("/versions")).status, 404, "a plugin that is switched off");
    t.equal((await get("/datasets/extra/zarr/v/0")).status, 404, "a dataset that is gone");
    // Attributes are metadata, and part of the revision.
    t.not((await get("/datasets/stable/zarr/v/0")).headers.get("etag"), etag);

    await program.write({ datasets });
    for (let count = 0; count < 10; count++) program.run.child.kill("SIGHUP");
    await program.reload();
    await hammer.more(30);
    await hammer.stop();
    t.same(hammer.problems.slice(0, 5), []);
    t.comment(`${hammer.answers} answers`);
    t.notMatch(program.run.stderr(), /"level":[456]0/, "nothing to warn about");

    program.run.child.kill("SIGTERM");
    t.equal(await program.run.ended, 0);
  });
}

t.test("HUP while the server starts is not lost", async (t) => {
  const program = await startSmall(t, {
    async config(directory) {
      await writeArray(join(directory, "one"), 1);
      await writeFile(
        join(directory, "hup.mjs"),
        `import { setTimeout as delay } from "node:timers/promises";
         export default {
           name: "hup", version: "1.0.0", path: "example/hup",
           async routes() {
             if (globalThis.hasHup) return [];
             globalThis.hasHup = true;
             process.kill(process.pid, "SIGHUP");
             await delay(50);
             return [];
           },
         };`,
      );
      return { datasets: { one: "one" }, plugins: { hup: { module: "./hup.mjs" } } };
    },
  });
  await until(() => program.said("configuration reloaded").length === 1);
  t.same(await (await fetch(`${program.url}/datasets`)).json(), ["one"]);
});

/** What is asked for, and what may be answered. */
interface Target {
  readonly path: string;
  /** What is wrong with an answer; undefined: nothing. */
  problemOf(answer: RawAnswer): string | undefined;
}

/** Clients that ask without a pause, each on one connection, and look at every answer. */
interface Hammer {
  /** Answers so far. */
  readonly answers: number;
  /** What went wrong so far. */
  readonly problems: readonly string[];
  /** Resolves when each client has had so many more answers, or has failed. */
  more(count: number): Promise<void>;
  stop(): Promise<void>;
}

async function startHammer(port: number, targets: () => readonly Target[], clients = 6): Promise<Hammer> {
  const problems: string[] = [];
  const counts = Array.from({ length: clients }, () => 0);
  let isStopped = false;

  async function client(number: number): Promise<void> {
    const connection = await openConnection(port);
    try {
      for (let turn = number; !isStopped; turn++) {
        const all = targets();
        const target = all[turn % all.length]!;
        connection.send(requestText(target.path));
        const answer = await connection.answer();
        counts[number]! += 1;
        const problem = target.problemOf(answer);
        if (problem !== undefined) problems.push(`${target.path}: ${problem}`);
      }
    } catch (error) {
      problems.push(`client ${number}: ${String(error)}`);
      counts[number] = Number.POSITIVE_INFINITY;
    } finally {
      connection.socket.destroy();
    }
  }

  const running = Array.from({ length: clients }, (_, number) => client(number));
  return {
    get answers() {
      return counts.reduce((sum, count) => sum + count, 0);
    },
    problems,
    async more(count) {
      const wanted = counts.map((before) => before + count);
      while (!wanted.every((want, number) => counts[number]! >= want)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
    },
    async stop() {
      isStopped = true;
      await Promise.all(running);
    },
  };
}

/** 200 and exactly one of these bodies. */
function bodyIs(path: string, ...bodies: readonly Uint8Array[]): Target {
  return {
    path,
    problemOf({ status, body }) {
      if (status !== 200) return `status ${status}: ${body.toString().slice(0, 200)}`;
      return bodies.some((expected) => body.equals(expected)) ? undefined : "another body";
    },
  };
}

/** The same, or 404. */
function bodyIsOrAbsent(path: string, ...bodies: readonly Uint8Array[]): Target {
  const target = bodyIs(path, ...bodies);
  return { path, problemOf: (answer) => (answer.status === 404 ? undefined : target.problemOf(answer)) };
}

/** 200, and a text that is there. */
function textHas(path: string, text: string): Target {
  return {
    path,
    problemOf({ status, body }) {
      if (status !== 200) return `status ${status}`;
      return body.includes(text) ? undefined : `no ${text} in it`;
    },
  };
}
