import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { FieldStore } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { runLoad } from "../load/load.js";
import { runProbe } from "../load/run-probe.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { checkDecoded, checkDocument, fetchBody } from "../subjects/check-answers.js";
import { uwsSubject } from "../subjects/uws.js";
import { openMibStore, pathsOf } from "./rows.js";

const SIZES = { full: 64, small: 4, tiny: 1 } as const;
/** Uncached chunks per worker and second of measurement, more than one can encode. */
const CHUNKS_PER_SECOND = 500;
const CONNECTIONS = 64;
/** Load before and after the probe's time. */
const MARGIN_SECONDS = 1;
const PAUSE_MS = 1;
const ASKED = "asked";
const INFO = `/datasets/${ASKED}/info`;
/** Every other request is for `/info`, so that its percentiles have enough of them. */
const PATHS: readonly string[] = [
  `/datasets/${ASKED}/zarr/.zmetadata`,
  `/datasets/${ASKED}/zarr/field/.zarray`,
  `/datasets/${ASKED}/keys`,
  "/versions",
].flatMap((path) => [INFO, path]);
const IDLE = "idle";
const ENCODES = "while all workers encode";
const CONTROL = "another server, while all workers encode";

/** Whether metadata is answered as fast while every worker encodes. */
export const latency: BenchTable = {
  title: "latency of `/info` and other metadata, idle and while all workers encode",
  async *contests(context) {
    const store = await openMibStore(context, SIZES[context.size]);
    yield {
      contestants: [IDLE, ENCODES, CONTROL].flatMap((name) =>
        perBuild(context, name, (build, round) => measure(name, { build, round }, store, context)),
      ),
      compared: "`/info`: p99 ms",
      against: [IDLE],
      aims: [{ of: ENCODES, against: IDLE, most: 5 }],
      notes: [
        `Encoding: ${CONNECTIONS} connections ask for uncached chunks all the time. One connection asks for metadata, every ${PAUSE_MS} ms; what is late because the last answer was late counts as latency.`,
        "Another server: bare uWebSockets.js in its own process, asked for the same documents while zpublish encodes. It shows what contention for processors costs any server here.",
      ],
    };
  },
};

function measure(
  name: string,
  { build, round }: { readonly build: Build; readonly round: number },
  store: FieldStore,
  context: BenchContext,
): Promise<Figures> {
  const { seconds, freshFolder } = context;
  const workers = Math.max(1, availableParallelism() - 1);
  const needed = (seconds + 2 * MARGIN_SECONDS) * workers * CHUNKS_PER_SECOND;
  // Each id has cache keys of its own, so that the same stored chunks can be asked for again, uncached.
  const ids = Array.from({ length: Math.ceil(needed / store.chunkKeys.length) }, (_, i) => `copy${i}`);
  const dataset = { location: store.directory, encoding: { compressor: { id: "zstd", level: 3 } } };
  const datasets = Object.fromEntries([ASKED, ...ids].map((id) => [id, dataset]));
  const scratch = freshFolder("server");
  return withZpublish({ build, datasets, scratch }, async (server) => {
    if (round === 0) {
      await checkDocument(server.baseUrl, { ...store, id: ASKED }, INFO);
      await checkDecoded(server.baseUrl, { ...store, id: ASKED }, store.chunkKeys.slice(0, 1));
    }
    const other = name === CONTROL ? await startOther(server, store, freshFolder("other")) : undefined;
    try {
      const { baseUrl } = other ?? server;
      const probe = { baseUrl, paths: PATHS, pauseMs: PAUSE_MS, seconds, scratch };
      if (name === IDLE) return figuresOf(await runProbe(probe));
      const paths = ids.flatMap((id) => pathsOf({ ...store, id }, store.chunkKeys));
      const length = { seconds: seconds + 2 * MARGIN_SECONDS, isOnce: true };
      const load = runLoad(server, { paths, connections: CONNECTIONS, length, scratch });
      load.catch(() => undefined);
      await sleep(MARGIN_SECONDS * 1_000);
      const probed = await runProbe(probe);
      const loaded = await load;
      if (loaded.requests >= paths.length)
        throw new Error(`expected fewer than ${paths.length} chunks to be encoded, received all`);
      return { ...figuresOf(probed), "encodes/s": loaded.requests / loaded.seconds };
    } finally {
      await other?.stop();
    }
  });
}

/** Starts bare uWebSockets.js with the same documents in memory. */
async function startOther({ baseUrl }: RunningZpublish, store: FieldStore, scratch: string) {
  const paths = [...new Set(PATHS)];
  const documents = new Map<string, Buffer>();
  for (const path of paths) documents.set(path, await fetchBody(baseUrl, path));
  return uwsSubject.start({ store, documents, paths, headers: {}, serving: {}, scratch });
}

function figuresOf({ all, paths }: Awaited<ReturnType<typeof runProbe>>): Figures {
  const info = paths[INFO]!;
  return {
    ...{ "`/info`: p50 ms": info.p50, "`/info`: p99 ms": info.p99, "`/info`: highest ms": info.max },
    ...{ "all metadata: p50 ms": all.p50, "p99 ms": all.p99, "highest ms": all.max },
  };
}
