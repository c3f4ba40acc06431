import { configError } from "../config/problem.js";
import { datasetPathOf } from "../dataset/dataset-path.js";
import type { DatasetRegistry } from "../dataset/dataset-registry.js";
import { ZpublishError } from "../errors.js";
import type { App } from "../server/open-app.js";
import type { Runtime } from "../server/runtime.js";
import { readAxis } from "../warm/read-axis.js";
import { selectTargets, type WarmTarget } from "../warm/warm-targets.js";
import type { WarmRequest } from "./warm-command.js";

/** Ids that a message lists. */
const MAX_LISTED = 10;

/**
 * Chooses the chunks of all datasets, those of collections included. One of a collection that cannot be opened is left out unless it was
 * asked for by its id; the log names it.
 * @throws ZpublishError `invalid-config` if there is nothing of what is asked for
 */
export async function selectAll(
  { config, datasets }: Pick<App, "config" | "datasets">,
  makeChunk: Runtime["makeChunk"],
  { datasets: asked, variables, ranges }: WarmRequest,
  signal: AbortSignal,
): Promise<WarmTarget[]> {
  const ids = await idsOf(datasets, asked, config.limits.maxOpenDatasets);
  const problems: string[] = [];
  const targets: WarmTarget[] = [];
  const dims = new Set<string>();
  const paths = new Set<string>();
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
      { variables, ranges },
      (coordinate) => readAxis(coordinate, makeChunk),
      (problem) => problems.push(problem),
      datasetPathOf(config),
    );
    for (const { dims: names, path } of [...snapshot.arrays.values()].map(({ variable }) => variable)) {
      paths.add(path);
      for (const dim of names) dims.add(dim);
    }
    targets.push(...found);
  }
  if (signal.aborted) return [];
  for (const path of variables.map((each) => each.replace(/^\/+|\/+$/g, ""))) {
    if (path !== "" && ![...paths].some((each) => `${each}/`.startsWith(`${path}/`)))
      problems.push(`--variable: expected a variable or group of the datasets, received ${path}`);
  }
  for (const { dim, by } of ranges) {
    const flag = by === "index" ? "--isel" : "--sel";
    if (!dims.has(dim)) problems.push(`${flag}: expected a dimension of the datasets, received ${dim}`);
  }
  if (problems.length > 0) throw configError([...new Set(problems)]);
  return targets;
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
