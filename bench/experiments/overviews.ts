import Blosc from "numcodecs/blosc";
import { checkDecoded } from "../check-answers.js";
import type { FieldStore } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues } from "../data/field.js";
import { fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { MIB_SIDE, openMibStore } from "./open-mib-store.js";

/** Steps, of which each has four level chunks made of sixteen stored ones. */
const SIZES = { full: 64, small: 8, tiny: 1 } as const;
/** So many that a worker always finds a request waiting. */
const CONNECTIONS = 16;
/** Stored bytes, decoded, of which a level chunk is made, and a rechunked one. */
const READ_MIB = 4;
/** Cells along y and x that both are made of. */
const BOX_SIDE = 2 * MIB_SIDE;
/** Relative difference of two means: both are rounded to float32, perhaps after sums in another order. */
const TOLERANCE = 2 ** -22;

const LEVEL = "overview level";
const RECHUNKED = "rechunked";

interface OverviewRecord {
  readonly round: number;
  readonly subject: string;
  readonly chunks: number;
  readonly seconds: number;
  readonly readMibPerSecond: number;
}

/** Cost of coarser levels beside that of rechunking the same stored bytes. */
export const overviews: Experiment = {
  title:
    "chunks of an overview's first level, each once, empty cache, beside chunks that are rechunked from the same stored chunks",
  async run(context) {
    const { size, rounds, onProgress } = context;
    const store = await openMibStore(context, SIZES[size]);
    const subjects = [LEVEL, RECHUNKED] as const;
    const records: OverviewRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? subjects : [...subjects].reverse();
      for (const [i, subject] of order.entries()) {
        onProgress((round + i / order.length) / rounds, subject);
        records.push(await measure(subject, round, store, context));
      }
    }
    const rateOf = (subject: string, round: number) =>
      records.find((record) => record.subject === subject && record.round === round)!.readMibPerSecond;
    const ratios = Array.from(
      { length: rounds },
      (_, round) => rateOf(LEVEL, round) / rateOf(RECHUNKED, round),
    );
    const ratio = median(ratios)!;
    return {
      records,
      tables: [
        {
          columns: ["", "chunks/s", "MiB read/s", "lowest", "highest", "× rechunked", "lowest", "highest"],
          rows: subjects.map((subject) => {
            const own = records.filter((record) => record.subject === subject);
            const rates = own.map(({ readMibPerSecond }) => readMibPerSecond);
            const compared = subject === LEVEL ? ratios : ratios.map(() => 1);
            return [
              subject,
              median(own.map(({ chunks, seconds }) => chunks / seconds)),
              ...[median(rates), Math.min(...rates), Math.max(...rates)],
              ...[median(compared), Math.min(...compared), Math.max(...compared)],
            ];
          }),
        },
        {
          title: "Each round",
          columns: ["round", `${LEVEL}, MiB read/s`, `${RECHUNKED}, MiB read/s`, "ratio"],
          rows: ratios.map((each, round) => [
            round + 1,
            ...[rateOf(LEVEL, round), rateOf(RECHUNKED, round), each],
          ]),
        },
      ],
      goals: [
        {
          what: "rate of level chunks ÷ rate of rechunking the same bytes",
          expected: "at least 0.5",
          measured: ratio.toFixed(2),
          isMet: ratio >= 0.5,
        },
      ],
      notes: [
        `Both are made of the same four stored chunks of 1 MiB (float32, Blosc-LZ4), decoded: a level chunk of ${MIB_SIDE} × ${MIB_SIDE} means of four cells, a rechunked one of ${BOX_SIDE} × ${BOX_SIDE} cells. Both are encoded as they are stored, so that the rechunked one has four times as much to encode and to send.`,
        `A fresh server with an empty cache for each measurement, ${CONNECTIONS} connections, ${store.chunkKeys.length / READ_MIB} chunks once each; the start of the workers is in it. The files are in the system's page cache.`,
        "All answers of the first round were decoded and compared with the field, or with the means of its cells, and some of every other round.",
      ],
    };
  },
};

async function measure(
  subject: typeof LEVEL | typeof RECHUNKED,
  round: number,
  store: FieldStore,
  { freshFolder }: ExperimentContext,
): Promise<OverviewRecord> {
  const scratch = freshFolder("server");
  const { id, directory: location } = store;
  const how =
    subject === LEVEL
      ? { overviews: { levels: 1, method: "mean" } }
      : { encoding: { chunks: { y: BOX_SIDE, x: BOX_SIDE } } };
  const server = await startZpublish({ datasets: { [id]: { location, ...how } }, scratch });
  try {
    const perSide = FIELD_SIDE / BOX_SIDE;
    const keys = Array.from({ length: store.steps * perSide ** 2 }, (_, index) => {
      const [y, x] = [Math.floor(index / perSide) % perSide, index % perSide];
      return `field/${Math.floor(index / perSide ** 2)}.${y}.${x}`;
    });
    const prefix = subject === LEVEL ? `/datasets/${id}/overviews/zarr/1/` : `/datasets/${id}/zarr/`;
    // Opens the dataset, as the first request of any client does.
    await fetchBody(server.baseUrl, `${prefix}field/.zarray`);
    const load = await runNodeLoad({
      baseUrl: server.baseUrl,
      paths: keys.map((key) => prefix + key),
      headers: {},
      connections: CONNECTIONS,
      length: "once",
      status: 200,
      scratch,
    });
    checkLoad(load, `overviews: ${subject}`, server);
    const step = round === 0 ? 1 : Math.ceil(keys.length / 8);
    const checked = keys.filter((_, index) => index % step === 0);
    if (subject === RECHUNKED) await checkDecoded(server.baseUrl, store, checked);
    else await checkMeans(server, prefix, checked);
    const { requests: chunks, seconds } = load;
    return { round, subject, chunks, seconds, readMibPerSecond: (chunks * READ_MIB) / seconds };
  } finally {
    await server.stop();
  }
}

/** Level chunks hold the means of the field's cells, two by two. @throws Error */
async function checkMeans(
  { baseUrl }: RunningZpublish,
  prefix: string,
  keys: readonly string[],
): Promise<void> {
  const document = JSON.parse((await fetchBody(baseUrl, `${prefix}field/.zarray`)).toString());
  const { chunks, compressor, dtype, filters } = document;
  if (
    dtype !== "<f4" ||
    filters !== null ||
    compressor?.id !== "blosc" ||
    chunks.join() !== `1,${MIB_SIDE},${MIB_SIDE}`
  )
    throw new Error(
      `overviews: expected Blosc of <f4 in chunks as stored, received ${JSON.stringify(document)}`,
    );
  const codec = Blosc.fromConfig(compressor);
  for (const key of keys) {
    const decoded = await codec.decode(await fetchBody(baseUrl, prefix + key));
    const means = new Float32Array(decoded.buffer, decoded.byteOffset, decoded.byteLength / 4);
    const [t, y, x] = key.slice("field/".length).split(".").map(Number) as [number, number, number];
    const values = fieldValues({
      begin: [t, y * BOX_SIDE, x * BOX_SIDE],
      length: [1, BOX_SIDE, BOX_SIDE],
    });
    for (const [index, mean] of means.entries()) {
      const at = Math.floor(index / MIB_SIDE) * 2 * BOX_SIDE + (index % MIB_SIDE) * 2;
      const sum = values[at]! + values[at + 1]! + values[at + BOX_SIDE]! + values[at + BOX_SIDE + 1]!;
      if (!(Math.abs(mean - sum / 4) <= (Math.abs(sum) / 4) * TOLERANCE))
        throw new Error(`${prefix}${key}: cell ${index}: expected ${sum / 4}, received ${mean}`);
    }
  }
}
