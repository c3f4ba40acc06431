import { Command, Option } from "commander";
import type { Config } from "../config/config.js";
import type { OptionKey } from "../config/options.js";
import { addServeArguments } from "../config/serve-command.js";
import { configError } from "../config/value-schemas.js";
import { datasetPathOf } from "../dataset/dataset.js";
import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { createLog, exitOnUncaught } from "../observe/log.js";
import { defaultMemoryBudget } from "../pool/chunk-task.js";
import { createEncodePool } from "../pool/encode-pool.js";
import type { App } from "../server/open-app.js";
import type { Runtime, RuntimeParts } from "../server/runtime.js";
import { type InstanceShare, instanceShare } from "../warm/instance-share.js";
import { doneOf, type WarmResult, warmChunks } from "../warm/warm-chunks.js";
import {
  type DimensionRange,
  parseIndexRange,
  parseValueRange,
  selectTargets,
  textOfRange,
  type WarmTarget,
} from "../warm/warm-targets.js";
import { EXIT_CODES, reportError } from "./output.js";
import { createWarmReporter, describeResult } from "./progress.js";
import { withApp } from "./with-app.js";

/** Ids that a message lists. */
const MAX_LISTED = 10;

/**
 * Chooses the chunks of all datasets, those of collections included. One of a collection that cannot be opened is left out unless it was
 * asked for by its id; the log names it.
 * @throws ZpublishError `invalid-config` if there is nothing of what is asked for
 */
async function selectAll(
  { config, datasets }: Pick<App, "config" | "datasets">,
  values: Runtime["values"],
  { datasets: asked, variables, ranges, encodings }: WarmRequest,
  signal: AbortSignal,
): Promise<WarmTarget[]> {
  const ids = await idsOf(datasets, asked, config.limits.maxOpenDatasets);
  const problems: string[] = [];
  const targets: WarmTarget[] = [];
  const [dims, paths, names] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const empty = new Map<DimensionRange, string>();
  const matched = new Set<DimensionRange>();
  for (const [index, id] of ids.entries()) {
    if (signal.aborted) return [];
    const isLeftOut = (error: unknown) =>
      error instanceof ZpublishError && asked.length === 0 && index >= datasets.configuredCount;
    const open = async () => datasets.open(id);
    const snapshot = await open().catch((error: unknown) => {
      if (isLeftOut(error)) return undefined;
      throw error;
    });
    if (snapshot === undefined) continue;
    const found = await selectTargets(
      snapshot,
      { variables, ranges, encodings },
      async (coordinate) => (await values().coordinates(snapshot, coordinate)).axes[0]!,
      (problem) => problems.push(problem),
      (range, extent) => void (extent === undefined ? matched.add(range) : empty.set(range, extent)),
      datasetPathOf(config),
    );
    for (const { dims: names, path } of [...snapshot.arrays.values()].map(({ variable }) => variable)) {
      paths.add(path);
      for (const dim of names) dims.add(dim);
    }
    for (const name of snapshot.encodings?.keys() ?? []) names.add(name);
    targets.push(...found);
  }
  if (signal.aborted) return [];
  for (const path of variables.map((each) => each.replace(/^\/+|\/+$/g, ""))) {
    if (path !== "" && ![...paths].some((each) => `${each}/`.startsWith(`${path}/`)))
      problems.push(`--variable: expected a variable or group of the datasets, received ${path}`);
  }
  problems.push(...unknownEncodings(encodings, names));
  for (const range of ranges) {
    const { dim, by } = range;
    const [flag, what] = by === "index" ? ["--isel", "indices"] : ["--sel", "values"];
    const extent = matched.has(range) ? undefined : empty.get(range);
    const received = textOfRange(range);
    if (extent !== undefined)
      problems.push(
        `${flag}: expected a range that has ${what} of '${dim}', received ${received}; ${extent}`,
      );
    if (!dims.has(dim)) problems.push(`${flag}: expected a dimension of the datasets, received ${dim}`);
  }
  if (problems.length > 0) throw configError([...new Set(problems)]);
  return targets;
}

/** Lists names of encodings that no dataset has, one line each. */
function unknownEncodings(asked: readonly string[], known: ReadonlySet<string>): string[] {
  const expected = known.size === 0 ? "a dataset with encodings" : `one of ${[...known].join(", ")}`;
  return asked
    .filter((name) => !known.has(name))
    .map((name) => `--encoding: expected ${expected}, received ${name}`);
}

/** Lists the datasets to warm. All of them are open at a time. */
async function idsOf(
  datasets: DatasetRegistry,
  asked: readonly string[],
  maxOpen: number,
): Promise<readonly string[]> {
  await listAll(datasets);
  const known = datasets.ids();
  const isKnown = new Set(known);
  const unknown = asked.filter((id) => !isKnown.has(id));
  if (unknown.length > 0) {
    const rest = known.length - MAX_LISTED;
    const list = `${known.slice(0, MAX_LISTED).join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
    throw configError(unknown.map((id) => `--dataset: expected one of ${list}, received ${id}`));
  }
  const ids = asked.length === 0 ? known : known.filter((id) => asked.includes(id));
  const configured = new Set(known.slice(0, datasets.configuredCount));
  const listed = ids.filter((id) => !configured.has(id)).length;
  if (listed <= maxOpen) return ids;
  throw configError([
    `--dataset: expected ids of at most ${maxOpen} datasets of collections (--max-open-datasets), received ${listed}`,
  ]);
}

/** Waits for the lists of collections and plugins: a server starts without those that take long. @throws ZpublishError */
async function listAll(datasets: DatasetRegistry): Promise<void> {
  const before = datasets.stats.providers;
  if (before.length === 0) return;
  await datasets.refresh();
  const failed = datasets.stats.providers.find(
    ({ failedLists }, index) => failedLists > (before[index]?.failedLists ?? 0),
  );
  if (failed !== undefined)
    throw new ZpublishError("source-unreadable", `'${failed.name}': its datasets cannot be listed`);
}

/** Time that chunks under way have after a signal. */
const END_WITHIN_MS = 5_000;

/**
 * Runs `warm`: opens the datasets as a server does, without a listener, and encodes what is asked for into the cache.
 * @returns The exit code.
 * @throws ZpublishError if the datasets cannot be opened, or do not have what is asked for.
 */
export async function runWarm(given: Config, request: WarmRequest): Promise<number> {
  if (given.cache === null) throw configError(["--no-cache: expected a cache to warm, received none"]);
  const { maxBytes } = given.cache;
  const threads = Math.max(1, Math.round(given.workers * request.share));
  const config = configOfWarm(given, threads);
  const log = createLog(config.logLevel);
  exitOnUncaught(log);
  const memoryBytes = Math.floor(defaultMemoryBudget() * request.share);
  const createPool: RuntimeParts["createPool"] = (options) =>
    createEncodePool({ ...options, memoryBudgetBytes: memoryBytes });
  return withApp(config, { log, progressLog: log, createPool }, async (app, runtime, stopping) => {
    const warmer = runtime.chunks();
    await runtime.started();
    if (runtime.cacheStats()?.isOff !== false)
      throw new ZpublishError("internal", "the cache cannot be opened");
    const targets = await selectAll(app, runtime.values, request, stopping.signal);
    const began = performance.now();
    const reporter = createWarmReporter(process.stderr, log);
    const warming = warmChunks(targets, {
      warmer,
      cacheBytes: maxBytes,
      isOwn: request.isOwn,
      rootPath: config.rootPath,
      threads,
      memoryBytes,
      stored: request.stored,
      signal: stopping.signal,
      hasEvicted: () => (runtime.cacheStats()?.evictions ?? 0) > 0,
      onProgress: reporter.update,
    });
    await Promise.race([warming, stopping.aborted]);
    const result = (await settlesWithin(warming, END_WITHIN_MS)) ? await warming : undefined;
    reporter.clear();
    if (result === undefined) {
      reportError(`ended by a signal; chunks under way were not finished within ${END_WITHIN_MS / 1_000} s`);
      return stopping.exitCode();
    }
    const seconds = (performance.now() - began) / 1_000;
    process.stdout.write(describeResult(result, seconds, runtime.cacheStats()?.evictions ?? 0));
    return exitCodeOfResult(result, stopping.exitCode);
  });
}

/** Changes what a command without a listener does not need: other users may read its files, and each part of a share is a thread. */
function configOfWarm(config: Config, threads: number): Config {
  return {
    ...config,
    workers: threads,
    access: { trustedProxies: [], tls: null, tokenFile: null, jwt: null, signingKeyFile: null },
    observe: { ...config.observe, admin: null },
  };
}

function exitCodeOfResult(result: WarmResult, signalCode: () => number): number {
  const { stopped, failures, failed, total } = result;
  for (const failure of failures) reportError(failure);
  if (failed > failures.length) reportError(`and ${failed - failures.length} others`);
  const left = total - doneOf(result);
  if (stopped === "cancelled") {
    reportError(`ended by a signal, ${left} chunks are left: the same command continues`);
    return signalCode();
  }
  if (stopped === "cache-full") reportError(`the cache is full, ${left} chunks are left`);
  if (stopped === "cache-failed")
    reportError(`the cache cannot be written, ${left} chunks are left; the log has the reason`);
  return stopped === undefined && failed === 0 ? EXIT_CODES.done : EXIT_CODES.failed;
}

/** Request of an operator to `warm`, besides the configuration of a server. */
interface WarmRequest {
  /** Ids of datasets; empty for all. */
  readonly datasets: readonly string[];
  /** Paths of variables and groups; empty for all. */
  readonly variables: readonly string[];
  readonly ranges: readonly DimensionRange[];
  /** Names of further encodings; empty for everything. */
  readonly encodings: readonly string[];
  readonly stored: boolean;
  /** Share of the workers, more than 0 and at most 1. */
  readonly share: number;
  readonly isOwn: InstanceShare | undefined;
}

/** Options of a server that matter here. */
const SHOWN: readonly OptionKey[] = [
  ...(["workers", "cacheDir", "cacheSize", "rootPath", "single", "logLevel", "skipInvalid"] as const),
  ...(["chunkTimeout", "sourceTimeout", "workerMemory", "maxChunkSize"] as const),
];

const DETAILS = `
Give it the arguments and the file of the server: chunks are cached for the same
datasets, encodings, --cache-dir and --cache-size only. All options of serve are
taken. A server may run meanwhile. What is cached already is skipped, so that
the command can be repeated. Coordinates of what is selected are always part of it.

Ranges:
  --isel time=0:100         indices as in Python: without 100; time=-24: the last 24
  --sel time=2013-01:2013-02   dates in the calendar of the data, January and February
  --sel lat=30:50           values with both ends, in either order

Instances behind a balancer by path, as in scripts/deploy:
  --instances 192.0.2.11:9000,192.0.2.12:9000 --instance 192.0.2.11:9000
                            nginx, whose hash depends on the names of its servers
  --instances 3 --instance 1   HAProxy, whose servers have the ids 1 to 3

Examples:
  zpublish warm --config zpublish.json --share 0.5
  zpublish warm data/air.zarr --variable t2m --sel time=2013-01-01:

TERM and INT end it soon; what was made until then stays cached. The exit code is
0 if everything is cached, and 1 if some chunks failed or did not fit.
`;

/** Creates the `warm` command, for help and parsing. It has no action. */
export function createWarmCommand(): Command {
  const command = new Command("warm").description("Encode chunks into the cache before they are asked for");
  const several = (text: string, before: readonly string[] = []) => [...before, text];
  command
    .addOption(new Option("--dataset <id>", "Only this dataset; may be repeated").argParser(several))
    .addOption(
      new Option("--variable <path>", "Only this variable or group; may be repeated").argParser(several),
    )
    .addOption(
      new Option(
        "--encoding <name>",
        "Only chunks of this one of the datasets' encodings; may be repeated",
      ).argParser(several),
    )
    .addOption(
      new Option("--isel <dim=range>", "Only these indices of a dimension; may be repeated").argParser(
        several,
      ),
    )
    .addOption(
      new Option("--sel <dim=range>", "Only these values of a dimension; may be repeated").argParser(several),
    )
    .option("--stored", "Cache also chunks that are served as they are stored, for data on other machines")
    .option("--share <share>", "Share of the workers, more than 0 and at most 1 (default: 1)")
    .option(
      "--instances <instances>",
      "Servers of the balancer: nginx's names with commas, or HAProxy's number",
    )
    .option("--instance <instance>", "Only chunks that the balancer sends to this one of them");
  return addServeArguments(command, SHOWN).addHelpText("after", DETAILS);
}

/** Reads what a parsed `warm` command asks for. @throws ZpublishError `invalid-config`, a line for each problem */
export function warmRequestOf(command: Command): WarmRequest {
  const options = command.opts<{
    dataset?: string[];
    variable?: string[];
    encoding?: string[];
    isel?: string[];
    sel?: string[];
    stored?: boolean;
    share?: string;
    instances?: string;
    instance?: string;
  }>();
  const problems: string[] = [];
  const rangesOf = (
    flag: string,
    texts: readonly string[] = [],
    parse: (text: string) => DimensionRange | undefined,
    expected: string,
  ) =>
    texts.flatMap((text) => {
      const range = parse(text);
      if (range === undefined) problems.push(`${flag}: expected ${expected}, received "${text}"`);
      return range ?? [];
    });
  const ranges = [
    ...rangesOf("--isel", options.isel, parseIndexRange, "DIM=BEGIN:END such as time=0:100"),
    ...rangesOf("--sel", options.sel, parseValueRange, "DIM=LOW:HIGH of numbers or dates such as lat=30:50"),
  ];
  const share = options.share === undefined ? 1 : Number(options.share);
  if (!(share > 0 && share <= 1))
    problems.push(`--share: expected a number above 0 and up to 1, received "${options.share}"`);
  const { instances, instance } = options;
  let isOwn: InstanceShare | undefined;
  if (instances !== undefined && instance !== undefined) {
    const found = instanceShare(instances, instance);
    if (typeof found === "string") problems.push(found);
    else isOwn = found;
  } else if (instances !== instance) {
    const [given, missing] = instances === undefined ? ["instance", "instances"] : ["instances", "instance"];
    problems.push(`--${given}: expected --${missing} with it, received none`);
  }
  if (problems.length > 0) throw configError(problems);
  const { dataset = [], variable = [], encoding = [], stored = false } = options;
  return { datasets: dataset, variables: variable, encodings: encoding, ranges, stored, share, isOwn };
}
