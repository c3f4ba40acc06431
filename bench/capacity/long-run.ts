import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { runProgram } from "../children.js";
import { openFieldStore } from "../data/bench-data.js";
import { type LoadTarget, runLoad } from "../load/load.js";
import { readResidentMemory } from "../process-cost.js";
import { startOrigin } from "../remote/origin.js";
import { withZpublish } from "../start-zpublish.js";
import { checkNotModified } from "../subjects/check-answers.js";
import { type LongRunSample, longRunPlot, longRunTable } from "./long-run-plot.js";

const HELP = `node dist/bench/capacity/long-run.js [--minutes 30] [--out bench/capacity/long-run]

Puts full load of all kinds on one server, and writes every 10 s what it holds in memory and in its cache, and the 99th percentile
of the latency of each kind: OUT.csv and OUT.svg. An answer of another status than expected ends the run.
`;

/** Length of a sample. */
const SAMPLE_SECONDS = 10;
const MIB = 2 ** 20;
/** Less than the chunks that are asked for, so that some are always evicted. */
const CACHE_SIZE = "256MiB";

/** Requests of one kind, all the time. */
interface KindOfLoad {
  readonly name: string;
  readonly paths: readonly string[];
  readonly connections: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status?: number;
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: "30" },
      out: { type: "string", default: "bench/capacity/long-run" },
      help: { type: "boolean", default: false },
    },
  });
  const minutes = Number(values.minutes);
  if (values.help || !(minutes > 0)) {
    console.log(HELP);
    process.exitCode = values.help ? 0 : 2;
    return;
  }
  const scratch = mkdtempSync(join(tmpdir(), "zpublish-long-run-"));
  try {
    await run(minutes, values.out, scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

async function run(minutes: number, out: string, scratch: string): Promise<void> {
  const large = await openFieldStore("mib", 512, 64, () => {});
  const small = await openFieldStore("kib64", 128, 4, () => {});
  const origin = await startOrigin(dirname(large.directory), 0);
  const datasets = {
    small: { location: small.directory },
    large: { location: large.directory },
    zstd: { location: large.directory, encoding: { compressor: { id: "zstd", level: 1 } } },
    remote: { location: `${origin.url}/${basename(large.directory)}` },
  };
  const args = ["--cache-size", CACHE_SIZE];
  const chunks = (id: keyof typeof datasets, keys: readonly string[]) =>
    keys.map((key) => `/datasets/${id}/zarr/${key}`);
  try {
    await withZpublish({ datasets, scratch, args }, async (server) => {
      const [first = ""] = chunks("large", large.chunkKeys);
      const etag = await checkNotModified(server.baseUrl, first);
      const documents = ["info", "keys", "zarr/.zmetadata", "zarr/field/.zarray"];
      const kinds: readonly KindOfLoad[] = [
        { name: "cached, 37 KB", paths: chunks("small", small.chunkKeys.slice(0, 200)), connections: 8 },
        { name: "590 KB, as stored", paths: chunks("large", large.chunkKeys), connections: 8 },
        { name: "to Zstandard, 1 MiB", paths: chunks("zstd", large.chunkKeys), connections: 8 },
        { name: "remote, 590 KB", paths: chunks("remote", large.chunkKeys), connections: 4 },
        { name: "metadata", paths: documents.map((path) => `/datasets/large/${path}`), connections: 4 },
        { name: "304", paths: [first], connections: 2, headers: { "If-None-Match": etag }, status: 304 },
        {
          name: "select, a box as CSV",
          paths: large.chunkKeys
            .slice(0, 64)
            .map((_, i) => `/datasets/large/select?var=field&isel.time=${i}&isel.y=0:8&isel.x=0:8&f=csv`),
          connections: 1,
        },
      ];
      await sampleAll(server, kinds, minutes, out, scratch);
    });
  } finally {
    await origin.stop();
  }
}

async function sampleAll(
  server: LoadTarget & { readonly pid: number },
  kinds: readonly KindOfLoad[],
  minutes: number,
  out: string,
  scratch: string,
): Promise<void> {
  const samples: LongRunSample[] = [];
  const began = performance.now();
  while (performance.now() - began < minutes * 60_000) {
    const loads = await Promise.all(
      kinds.map(async (kind, i) => {
        const folder = mkdtempSync(join(scratch, `load-${i}-`));
        const load = await runLoad(server, { ...kind, length: { seconds: SAMPLE_SECONDS }, scratch: folder });
        rmSync(folder, { recursive: true });
        return load;
      }),
    );
    const resident = readResidentMemory(server.pid);
    if (resident === undefined) throw new Error("expected /proc/PID/smaps, which this system does not have");
    const metrics = await (await fetch(`${server.baseUrl}/metrics`)).text();
    samples.push({
      seconds: Math.round((performance.now() - began) / 1_000),
      residentMib: resident.otherBytes / MIB,
      mapMib: resident.cacheMapBytes / MIB,
      cacheMib: metricOf(metrics, "zpublish_cache_bytes") / MIB,
      maxCacheMib: metricOf(metrics, "zpublish_cache_max_bytes") / MIB,
      cacheEntries: metricOf(metrics, "zpublish_cache_entries"),
      openFiles: metricOf(metrics, "process_open_fds"),
      kinds: kinds.map(({ name }, i) => {
        const { p99, requests, seconds } = loads[i]!;
        return { name, p99, rate: requests / seconds };
      }),
    });
    writeFileSync(`${out}.csv`, longRunTable(samples));
    writeFileSync(`${out}.svg`, longRunPlot(samples));
  }
}

/** Returns the sum of a metric over its labels. @throws Error if there is no such metric. */
function metricOf(text: string, name: string): number {
  const found = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, "gm"))];
  if (found.length === 0) throw new Error(`expected the metric ${name}, received none`);
  return found.reduce((sum, [, value]) => sum + Number(value), 0);
}

await runProgram(import.meta.url, main);
