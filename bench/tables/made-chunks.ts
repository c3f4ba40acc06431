import { availableParallelism } from "node:os";
import { join } from "node:path";
import Blosc from "numcodecs/blosc";
import { type CodecProcess, NATIVE, startNative } from "../codecs/codec-subjects.js";
import { FIELD_COMPRESSOR, type FieldStore, OTHER_FIELD_COMPRESSOR } from "../data/bench-data.js";
import { fieldValues } from "../data/field.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contestant,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type MeasuredLoad, measureLoad, runLoad } from "../load/load.js";
import { type RunningZpublish, runWarm, withZpublish } from "../start-zpublish.js";
import { checkDecoded, fetchAnswer, fetchBody } from "../subjects/check-answers.js";
import { FIRST_SECONDS, gridKeys, MIB_SIDE, openMibStore, pathsOf } from "./rows.js";

/** Chunks that are decoded and compared after rounds other than the first, where all of them are. */
const SAMPLED = 16;

/** All in the first round, and some in every other round. */
function toCheck(keys: readonly string[], round: number): readonly string[] {
  const step = round === 0 ? 1 : Math.ceil(keys.length / SAMPLED);
  return keys.filter((_, i) => i % step === 0);
}

/** 64 steps are 1,024 chunks. */
const TRANSCODED_STEPS = { full: 64, small: 4, tiny: 1 } as const;
/** So many that a worker always finds a request waiting. */
const TRANSCODE_CONNECTIONS = 32;
const WORKERS = ["--workers", String(availableParallelism())];
const NATIVE_LOOP = `${NATIVE}, a loop on one core`;
const NATIVE_READING = `${NATIVE}, the same, reading the files`;
const TRANSCODING = { encoding: { compressor: OTHER_FIELD_COMPRESSOR } };

/** What the whole server makes of Blosc-LZ4 chunks, beside native code that does nothing else. */
export const transcodeCold: BenchTable = {
  title:
    "chunks of 1 MiB from Blosc-LZ4 to Blosc-LZ4, each once, empty cache, beside native numcodecs in a plain loop",
  async *contests(context) {
    const store = await openMibStore(context, TRANSCODED_STEPS[context.size]);
    const native = await startNative();
    const missing = "missing" in native ? [`Without ${NATIVE}: ${native.missing}.`] : [];
    const servers = [[], WORKERS, [...WORKERS, "--no-cache"]].flatMap((args) =>
      [false, true].flatMap((isRunning) => {
        const name = ["zpublish", ...args].join(" ") + (isRunning ? ", running" : ", just started");
        return perBuild(context, name, (build, round) =>
          transcode(store, { build, round, args, isRunning }, context),
        );
      }),
    );
    const runningNames = servers.map(({ name }) => name).filter((name) => name.endsWith(", running"));
    try {
      yield {
        contestants: [...servers, ...("missing" in native ? [] : nativeLoops(native, store))],
        compared: "chunks/s",
        against: [NATIVE_LOOP, NATIVE_READING],
        aims: [...new Set(runningNames)].map((of) => ({ of, against: NATIVE_LOOP, least: 0.8 })),
        notes: [
          "Stored and served compressor differ in the block size alone, which c-blosc would choose itself: the server decodes and encodes every chunk, and native code does the same work.",
          `"Just started" is a fresh server each round; "running" has been asked for the same chunks of another dataset before. ${TRANSCODE_CONNECTIONS} connections ask for every chunk once.`,
          "Native: one Python process on one thread, decode and encode, without sending anything; the stored chunks are in memory, or are read one by one.",
          ...missing,
        ],
      };
    } finally {
      if (!("missing" in native)) await native.stop();
    }
  },
};

interface TranscodeOptions {
  readonly build: Build;
  readonly round: number;
  readonly args: readonly string[];
  /** Whether the server has worked before. */
  readonly isRunning: boolean;
}

function transcode(
  store: FieldStore,
  { build, round, args, isRunning }: TranscodeOptions,
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const dataset = { location: store.directory, ...TRANSCODING };
  const scratch = freshFolder("server");
  return withZpublish(
    { build, datasets: { first: dataset, second: dataset }, scratch, args },
    async (server) => {
      const load = (id: string, length: MeasuredLoad["length"]) => ({
        paths: pathsOf({ ...store, id }, store.chunkKeys),
        ...{ connections: TRANSCODE_CONNECTIONS, length, scratch, unit: "chunks" },
      });
      if (isRunning) await runLoad(server, load("second", "once"));
      const figures = await measureLoad(
        server,
        load("first", isRunning ? "once" : { seconds: FIRST_SECONDS, isOnce: true }),
      );
      await checkDecoded(server.baseUrl, { ...store, id: "first" }, toCheck(store.chunkKeys, round));
      return figures;
    },
  );
}

function nativeLoops(native: CodecProcess, store: FieldStore): Contestant[] {
  const loop = (name: string, isReading: boolean): Contestant => ({
    name,
    async measure() {
      const answer = await native.ask({
        ...{
          job: "transcode",
          codec: FIELD_COMPRESSOR,
          to: OTHER_FIELD_COMPRESSOR,
          dtype: "<f4",
          itemSize: 4,
        },
        decodedByteLength: MIB_SIDE ** 2 * 4,
        inputs: store.chunkKeys.map((key) => join(store.directory, key)),
        isReading,
      });
      if (!("chunks" in answer)) throw new Error("error" in answer ? answer.error : answer.missing);
      return { "chunks/s": answer.chunks / answer.seconds };
    },
  });
  return [loop(NATIVE_LOOP, false), loop(NATIVE_READING, true)];
}

/** Steps, of which each has four level chunks made of sixteen stored chunks. */
const OVERVIEW_STEPS = { full: 64, small: 8, tiny: 1 } as const;
const OVERVIEW_CONNECTIONS = 16;
/** Cells along y and x that a level chunk and a rechunked one are made of. */
const BOX_SIDE = 2 * MIB_SIDE;
/** Relative difference of two means: both are rounded to float32, perhaps after sums in another order. */
const TOLERANCE = 2 ** -22;
const LEVEL = "overview level";
const RECHUNKED = "rechunked";

/** Cost of coarser levels beside that of rechunking the same stored bytes. */
export const overviews: BenchTable = {
  title:
    "chunks of an overview's first level, each once, empty cache, beside chunks that are rechunked from the same stored chunks",
  async *contests(context) {
    const store = await openMibStore(context, OVERVIEW_STEPS[context.size]);
    yield {
      contestants: [LEVEL, RECHUNKED].flatMap((name) =>
        perBuild(context, name, (build, round) => coarsen(name, { build, round }, store, context)),
      ),
      compared: "chunks/s",
      against: [RECHUNKED],
      aims: [{ of: LEVEL, against: RECHUNKED, least: 0.5 }],
      notes: [
        `Both are made of the same four stored chunks of 1 MiB (float32, Blosc-LZ4): a level chunk of ${MIB_SIDE} × ${MIB_SIDE} means of four cells, a rechunked one of ${BOX_SIDE} × ${BOX_SIDE} cells, so that it has four times as much to encode and to send.`,
        `A fresh server with an empty cache for each measurement, ${OVERVIEW_CONNECTIONS} connections; the start of the workers is in it.`,
      ],
    };
  },
};

function coarsen(
  name: string,
  { build, round }: Pick<TranscodeOptions, "build" | "round">,
  store: FieldStore,
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const { id, directory: location } = store;
  const isLevel = name === LEVEL;
  const how = isLevel
    ? { overviews: { levels: 1, method: "mean" } }
    : { encoding: { chunks: { y: BOX_SIDE, x: BOX_SIDE } } };
  return withZpublish({ build, datasets: { [id]: { location, ...how } }, scratch }, async (server) => {
    const keys = gridKeys(BOX_SIDE, store.steps);
    const prefix = isLevel ? `/datasets/${id}/overviews/zarr/1/` : `/datasets/${id}/zarr/`;
    // Opens the dataset, as the first request of any client does.
    await fetchBody(server.baseUrl, `${prefix}field/.zarray`);
    const paths = keys.map((key) => prefix + key);
    const load = { paths, connections: OVERVIEW_CONNECTIONS, length: "once" as const, scratch };
    const figures = await measureLoad(server, { ...load, unit: "chunks" });
    const checked = toCheck(keys, round);
    if (isLevel) await checkMeans(server, prefix, checked);
    else await checkDecoded(server.baseUrl, store, checked);
    return figures;
  });
}

/** Level chunks hold the means of the field's cells, two by two. @throws Error */
async function checkMeans(
  { baseUrl }: RunningZpublish,
  prefix: string,
  keys: readonly string[],
): Promise<void> {
  const document = JSON.parse((await fetchBody(baseUrl, `${prefix}field/.zarray`)).toString());
  const { chunks, compressor, dtype, filters } = document;
  const isAsStored = dtype === "<f4" && filters === null && compressor?.id === "blosc";
  if (!isAsStored || chunks.join() !== `1,${MIB_SIDE},${MIB_SIDE}`)
    throw new Error(`expected Blosc of <f4 in chunks as stored, received ${JSON.stringify(document)}`);
  const codec = Blosc.fromConfig(compressor);
  for (const key of keys) {
    const decoded = await codec.decode(await fetchBody(baseUrl, prefix + key));
    const means = new Float32Array(decoded.buffer, decoded.byteOffset, decoded.byteLength / 4);
    const [t, y, x] = key.slice("field/".length).split(".").map(Number) as [number, number, number];
    const begin = [t, y * BOX_SIDE, x * BOX_SIDE] as const;
    const values = fieldValues({ begin, length: [1, BOX_SIDE, BOX_SIDE] });
    for (const [index, mean] of means.entries()) {
      const at = Math.floor(index / MIB_SIDE) * 2 * BOX_SIDE + (index % MIB_SIDE) * 2;
      const sum = values[at]! + values[at + 1]! + values[at + BOX_SIDE]! + values[at + BOX_SIDE + 1]!;
      if (!(Math.abs(mean - sum / 4) <= (Math.abs(sum) / 4) * TOLERANCE))
        throw new Error(`${prefix}${key}: cell ${index}: expected ${sum / 4}, received ${mean}`);
    }
  }
}

const WARMED_STEPS = { full: 32, small: 4, tiny: 1 } as const;
const WARM_CONNECTIONS = 8;
const BY_PROGRAM = "`zpublish warm`";
const BY_CLIENT = "a client asks for each chunk";

/** How fast a cache is filled. */
export const warm: BenchTable = {
  title: "chunks of 1 MiB transcoded into an empty cache, by `zpublish warm` and by a client of the server",
  async *contests(context) {
    const store = await openMibStore(context, WARMED_STEPS[context.size]);
    yield {
      contestants: [
        ...perBuild(context, BY_PROGRAM, (build) => fillByProgram(store, build, context)),
        ...perBuild(context, BY_CLIENT, (build) => fillByClient(store, build, context)),
      ],
      compared: "chunks/s",
      against: [BY_CLIENT],
      aims: [{ of: BY_PROGRAM, against: BY_CLIENT, least: 0.8 }],
      notes: [
        `${store.chunkKeys.length} chunks with the workers that are the default. The time of \`zpublish warm\` is that of its process, start included; the server is ready before its time begins.`,
        "After `zpublish warm`, a server that is started with its cache is asked for some of the chunks: all of them have to be cached, and right.",
      ],
    };
  },
};

async function fillByProgram(
  store: FieldStore,
  build: Build,
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const settings = {
    ...{ build, scratch: freshFolder("server") },
    datasets: { [store.id]: { location: store.directory, ...TRANSCODING } },
  };
  const seconds = await runWarm(settings);
  await withZpublish(settings, async ({ baseUrl }) => {
    const keys = toCheck(store.chunkKeys, 1);
    for (const path of pathsOf(store, keys)) {
      const origin = (await fetchAnswer(baseUrl, path)).headers.get("x-cache");
      if (origin !== "HIT") throw new Error(`${path}: expected a cached chunk, received ${origin}`);
    }
    await checkDecoded(baseUrl, store, keys);
  });
  return { "chunks/s": store.chunkKeys.length / seconds };
}

function fillByClient(store: FieldStore, build: Build, { freshFolder }: BenchContext): Promise<Figures> {
  const scratch = freshFolder("server");
  const datasets = { [store.id]: { location: store.directory, ...TRANSCODING } };
  return withZpublish({ build, datasets, scratch }, async (server) => {
    const paths = pathsOf(store, store.chunkKeys);
    const load = { paths, connections: WARM_CONNECTIONS, length: "once" as const, scratch };
    const { requests, seconds } = await runLoad(server, load);
    await checkDecoded(server.baseUrl, store, toCheck(store.chunkKeys, 1));
    return { "chunks/s": requests / seconds };
  });
}
