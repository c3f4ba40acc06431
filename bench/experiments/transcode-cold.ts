import { availableParallelism } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { checkDecoded } from "../check-answers.js";
import type { CodecProcess } from "../codecs/codec-process.js";
import { NATIVE, startNative } from "../codecs/codec-subjects.js";
import { FIELD_COMPRESSOR, type FieldStore, OTHER_FIELD_COMPRESSOR } from "../data/bench-data.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { readProcessCost } from "../process-cost.js";
import {
  FRESH,
  NATIVE_LOOP,
  NATIVE_READING,
  RUNNING,
  SERVERS,
  type TranscodeRecord,
  transcodeReport,
} from "../report/transcode-report.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { MIB_SIDE, openMibStore } from "./open-mib-store.js";

/** 64 steps are 1,024 chunks. */
const SIZES = { full: 64, small: 4, tiny: 1 } as const;
const MIB = MIB_SIDE ** 2 * 4;
/** So many that a worker always finds a request waiting. */
const CONNECTIONS = 32;
/** Answers that are decoded in rounds behind the first, which has all of them decoded. */
const SAMPLED = 16;
/** Until what the first load has left for the cache is written. */
const SETTLE_MS = 500;

const DEFAULT_WORKERS = Math.max(1, availableParallelism() - 1);

const NOTES: readonly string[] = [
  `Stored as ${describe(FIELD_COMPRESSOR)}, served as ${describe(OTHER_FIELD_COMPRESSOR)}: another compressor to the server, so that it decodes and encodes every chunk; to c-blosc the block size that it chooses itself for these chunks, so native code does the same work, and writes the same bytes, as for the stored options.`,
  `zpublish: ${availableParallelism()} processors for the server, by default with ${DEFAULT_WORKERS} ${DEFAULT_WORKERS === 1 ? "worker" : "workers"}, and the load, which asks for every chunk once on ${CONNECTIONS} connections. "${FRESH}" is a fresh server in every round: the start of the workers and code that is not compiled yet are in it. "${RUNNING}": the same server asked right afterwards for the same chunks of another dataset, none of which it has in its cache. With a cache it also writes some 580 KB per chunk to the disk meanwhile.`,
  "Native: one Python process on one thread, decode and encode one chunk after the other; nobody is sent anything. The stored chunks are read into memory before, or one by one in the loop from the system's page cache, where the server reads them, too.",
  "All answers of the first round were decoded by numcodecs.js and compared with the field, and some of every other round; the loop's first chunks were decoded again and compared.",
];

/** What the whole server makes of Blosc-LZ4 chunks, beside native code that does nothing else. */
export const transcodeCold: Experiment = {
  title:
    "chunks of 1 MiB from Blosc-LZ4 to Blosc-LZ4, each once, empty cache, beside native numcodecs in a plain loop",
  async run(context) {
    const { size, rounds, onProgress } = context;
    const store = await openMibStore(context, SIZES[size]);
    const native = await startNative();
    const notes: string[] = [];
    if ("missing" in native) notes.push(`Without ${NATIVE}, and so without a goal: ${native.missing}.`);
    const records: TranscodeRecord[] = [];
    const measures: (readonly [name: string, measure: (round: number) => Promise<TranscodeRecord[]>])[] = [
      ...SERVERS.map(
        ({ name, args }) =>
          [name, (round: number) => measureServer(round, store, context, name, args)] as const,
      ),
      ...("missing" in native
        ? []
        : [[NATIVE_LOOP, (round: number) => measureNative(round, store, native)] as const]),
    ];
    try {
      for (let round = 0; round < rounds; round++) {
        const order = round % 2 === 0 ? measures : [...measures].reverse();
        for (const [i, [name, measure]] of order.entries()) {
          onProgress((round + i / order.length) / rounds, name);
          records.push(...(await measure(round)));
        }
      }
    } finally {
      if (!("missing" in native)) await native.stop();
    }
    return { records, ...transcodeReport(records), notes: [...NOTES, ...notes] };
  },
};

/** A server that is asked for all chunks when it is ready, and then for the same again as chunks of another dataset. */
async function measureServer(
  round: number,
  store: FieldStore,
  context: ExperimentContext,
  name: string,
  args: readonly string[],
): Promise<TranscodeRecord[]> {
  const scratch = context.freshFolder("server");
  const server = await startServer(store, ["first", "second"], scratch, args);
  try {
    const records = [await load(`${name}, ${FRESH}`, round, server, { ...store, id: "first" }, scratch)];
    await sleep(SETTLE_MS);
    records.push(await load(`${name}, ${RUNNING}`, round, server, { ...store, id: "second" }, scratch));
    return records;
  } finally {
    await server.stop();
  }
}

function startServer(
  { directory }: FieldStore,
  ids: readonly string[],
  scratch: string,
  args: readonly string[],
): Promise<RunningZpublish> {
  const dataset = { location: directory, encoding: { compressor: OTHER_FIELD_COMPRESSOR } };
  return startZpublish({ datasets: Object.fromEntries(ids.map((id) => [id, dataset])), scratch, args });
}

/** Asks for every chunk once, and decodes them afterwards: in the first round all of them. */
async function load(
  subject: string,
  round: number,
  server: RunningZpublish,
  store: FieldStore,
  scratch: string,
): Promise<TranscodeRecord> {
  const before = readProcessCost(server.pid);
  const result = await runNodeLoad({
    baseUrl: server.baseUrl,
    paths: store.chunkKeys.map((key) => `/datasets/${store.id}/zarr/${key}`),
    headers: {},
    connections: CONNECTIONS,
    length: "once",
    status: 200,
    scratch,
  });
  const after = readProcessCost(server.pid);
  checkLoad(result, `transcode-cold: ${subject}`, server);
  const { requests: chunks, seconds, generatorCpuSeconds } = result;
  const step = Math.ceil(store.chunkKeys.length / SAMPLED);
  await checkDecoded(
    server.baseUrl,
    store,
    round === 0 ? store.chunkKeys : store.chunkKeys.filter((_, i) => i % step === 0),
  );
  return {
    round,
    subject,
    chunks,
    seconds,
    chunksPerSecond: chunks / seconds,
    cpuSeconds: before && after && after.cpuSeconds - before.cpuSeconds,
    generatorCpuSeconds,
  };
}

/** @throws Error where the loop fails. */
async function measureNative(
  round: number,
  store: FieldStore,
  native: CodecProcess,
): Promise<TranscodeRecord[]> {
  const inputs = store.chunkKeys.map((key) => join(store.directory, key));
  const kinds = [
    [NATIVE_LOOP, false],
    [NATIVE_READING, true],
  ] as const;
  const records: TranscodeRecord[] = [];
  for (const [subject, isReading] of kinds) {
    const answer = await native.ask({
      job: "transcode",
      codec: FIELD_COMPRESSOR,
      to: OTHER_FIELD_COMPRESSOR,
      dtype: "<f4",
      itemSize: 4,
      decodedByteLength: MIB,
      inputs,
      isReading,
    });
    if (!("chunks" in answer)) {
      throw new Error(`transcode-cold: ${subject}: ${"error" in answer ? answer.error : answer.missing}`);
    }
    const { chunks, seconds } = answer;
    records.push({ round, subject, chunks, seconds, chunksPerSecond: chunks / seconds });
  }
  return records;
}

function describe({
  cname,
  clevel,
  shuffle,
  blocksize,
}: typeof OTHER_FIELD_COMPRESSOR | typeof FIELD_COMPRESSOR) {
  return `${cname}, clevel ${clevel}, shuffle ${shuffle}, blocksize ${blocksize}`;
}
