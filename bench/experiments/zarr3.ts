import { checkSame, warmCache } from "../check-answers.js";
import { openFieldStore } from "../data/bench-data.js";
import { fetchAnswer, fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import type { LoadRequest, LoadResult } from "../load/load.js";
import { runNodeLoad } from "../load/node-load.js";
import { runWrk, wrkVersion } from "../load/wrk-load.js";
import { startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment } from "./experiment.js";

const SMALL_SIDE = 128;
const CHUNKS = 200;
const CONNECTIONS = 32;
const FORMATS = ["zarr", "zarr3"] as const;

/** A kind of request, in both formats. */
interface Kind {
  readonly title: string;
  readonly paths: Readonly<Record<(typeof FORMATS)[number], readonly string[]>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly status: number;
}

interface Measured extends LoadResult {
  readonly kind: string;
  readonly format: (typeof FORMATS)[number];
  readonly round: number;
}

/** Compares requests below `zarr3` with the same below `zarr`. */
export const zarr3: Experiment = {
  title: "chunks and documents of Zarr v3 beside those of v2, one server",
  async run({ rounds, seconds, parent, freshFolder, onProgress }) {
    const store = await openFieldStore("kib64", SMALL_SIDE, 1, () => {}, parent);
    const scratch = freshFolder("server");
    const server = await startZpublish({
      datasets: { [store.id]: { location: store.directory } },
      scratch,
      args: [],
    });
    // wrk takes whole seconds only.
    const load = wrkVersion() === undefined || !Number.isInteger(seconds) ? runNodeLoad : runWrk;
    const records: Measured[] = [];
    try {
      const keys = store.chunkKeys.slice(0, CHUNKS);
      const v2 = keys.map((key) => `/datasets/${store.id}/zarr/${key}`);
      const v3 = keys.map(
        (key) => `/datasets/${store.id}/zarr3/${key.replace("/", "/c/").replaceAll(".", "/")}`,
      );
      await warmCache(server.baseUrl, v2);
      for (const [i, path] of v3.entries())
        await checkSame(server.baseUrl, path, await fetchBody(server.baseUrl, v2[i] as string));
      const etag = (await fetchAnswer(server.baseUrl, v2[0] as string)).headers.get("etag") as string;
      const first = { zarr: v2.slice(0, 1), zarr3: v3.slice(0, 1) };
      const documentOf = (format: string, name: string) => [`/datasets/${store.id}/${format}/${name}`];
      const kinds: readonly Kind[] = [
        { title: "cached chunks of 37 KB", paths: { zarr: v2, zarr3: v3 }, headers: {}, status: 200 },
        {
          title: "metadata of the whole store",
          paths: { zarr: documentOf("zarr", ".zmetadata"), zarr3: documentOf("zarr3", "zarr.json") },
          headers: {},
          status: 200,
        },
        { title: "304 for a chunk", paths: first, headers: { "If-None-Match": etag }, status: 304 },
      ];
      for (let round = -1; round < rounds; round++) {
        for (const [i, { title, paths, headers, status }] of kinds.entries()) {
          onProgress((Math.max(0, round) + i / kinds.length) / rounds, title);
          for (const format of round % 2 === 0 ? FORMATS : FORMATS.toReversed()) {
            const request: LoadRequest = {
              baseUrl: server.baseUrl,
              paths: paths[format],
              headers,
              connections: CONNECTIONS,
              length: { seconds },
              status,
              scratch,
            };
            const result = await load(request);
            checkLoad(result, `zarr3: ${title}`, server);
            // The first round warms up.
            if (round >= 0) records.push({ kind: title, format, round, ...result });
          }
        }
      }
    } finally {
      await server.stop();
    }
    return { records, ...report(records, rounds) };
  },
};

function report(records: readonly Measured[], rounds: number) {
  const rate = ({ requests, seconds }: Measured) => requests / seconds;
  const titles = [...new Set(records.map(({ kind }) => kind))];
  const rows = titles.map((title) => {
    const of = (format: string) =>
      records.filter((record) => record.kind === title && record.format === format).map(rate);
    const [v2, v3] = [of("zarr"), of("zarr3")];
    const ratios = v3.map((value, round) => value / (v2[round] as number));
    return [title, median(v2), median(v3), median(ratios), Math.min(...ratios), Math.max(...ratios)];
  });
  return {
    tables: [{ columns: ["", "v2, requests/s", "v3, requests/s", "v3 ÷ v2", "least", "most"], rows }],
    goals: rows.map(([title, , , ratio = 0, , most = 0]) => ({
      what: `${title}: v3 ÷ v2`,
      expected: "1 within the spread of the rounds",
      measured: `${Number(ratio).toFixed(2)}, ${Number(most).toFixed(2)} at most`,
      isMet: Number(most) >= 1,
    })),
    notes: [`Medians of ${rounds} rounds, v2 and v3 in turn.`],
  };
}
