import t from "tap";
import { effort } from "../support/effort.js";
import {
  chunksOf,
  createFaults,
  problemOf,
  serveStores,
  startStores,
} from "../support/servers/remote-load.js";

/** Readers at a time, each of which asks for one chunk after the other. */
const READERS = 24;
const ROUNDS = effort(20);
const SEED = Number(process.env.ZPUBLISH_TEST_SEED ?? 1);

t.setTimeout(600_000);

t.test(
  `readers of an origin that fails at random and is sound by turns get no wrong byte (seed ${SEED})`,
  async (t) => {
    const [failing, sound] = [await startStores(t), await startStores(t)];
    const server = await serveStores(t, { failing, sound }, { seconds: 0.2 });
    const metadata = "/datasets/failing-shards-stored/zarr/.zmetadata";
    const before = await (await server.get(metadata)).text();
    const chunks = chunksOf("failing");
    for (let round = 0; round < ROUNDS; round++) {
      const share = [0.05, 0.3, 0.9][round % 3] as number;
      failing.setFault(createFaults(SEED + round, share));
      const problems: string[] = [];
      const read = async (reader: number) => {
        for (let i = reader; i < chunks.length * 4; i += 7) {
          const problem = await problemOf(server, chunks[i % chunks.length] as (typeof chunks)[0], true);
          if (problem !== undefined) problems.push(problem);
        }
      };
      const readSound = async () => {
        for (const chunk of chunksOf("sound")) {
          const problem = await problemOf(server, chunk, false);
          if (problem !== undefined) problems.push(problem);
        }
      };
      const reading = Promise.all(Array.from({ length: READERS }, (_, reader) => read(reader)));
      await Promise.all([readSound(), readSound()]);
      await reading;
      t.same(problems, [], `round ${round}, ${share * 100} % fail`);
      t.equal(await (await server.get(metadata)).text(), before);
      failing.setFault(() => undefined);
      let after: unknown[] = [undefined];
      // Requests may have joined others that began before.
      for (let pass = 0; pass < 5 && after.length > 0; pass++) {
        after = await Promise.all(chunks.map((chunk) => problemOf(server, chunk, false)));
        after = after.filter((problem) => problem !== undefined);
      }
      t.same(after, [], "all is right again");
    }
  },
);
