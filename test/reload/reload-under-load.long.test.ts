import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { ARRAY_CHUNKS, chunkOf, writeArray, writeGate } from "../support/servers/program-stores.js";
import { openConnection, requestText } from "../support/servers/raw-request.js";
import { startSmall } from "../support/servers/start-program.js";
import { bodyIs, bodyIsOrAbsent, startHammer, textHas } from "./hammer.js";

t.setTimeout(240_000);

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

  t.test(`a request in flight is answered by what it began with, with ${processes} processes`, async (t) => {
    let file = "";
    const program = await startSmall(t, {
      processes,
      async config(directory) {
        const gate = await writeGate(directory);
        file = gate.file;
        await writeArray(join(directory, "one"), 1);
        await writeArray(join(directory, "two"), 2);
        return { datasets: { one: "one" }, plugins: { gate: { module: gate.module } } };
      },
    });
    const connection = await openConnection(program.port);
    t.teardown(() => connection.socket.destroy());
    connection.send(requestText("/gate"));
    await program.write({ datasets: { two: "two" } });
    t.equal(await program.reload(), "reloaded");
    t.equal((await fetch(`${program.url}/gate`)).status, 404);
    t.same(await (await fetch(`${program.url}/datasets`)).json(), ["two"]);
    await writeFile(file, "");
    const answer = await connection.answer();
    t.strictSame([answer.status, answer.body.toString()], [200, "open"]);
    connection.send(requestText("/datasets"));
    t.equal((await connection.answer()).body.toString(), '["two"]', "the next of the same client");
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
