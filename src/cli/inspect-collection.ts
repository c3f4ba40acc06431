import type { DatasetProvider } from "../dataset/dataset-provider.js";
import { countOf, printable } from "./format-text.js";

/** Contents of a folder of datasets, as `inspect --json` prints it. */
export interface CollectionInspection {
  readonly location: string;
  /** Sorted by id. None of them was opened. */
  readonly datasets: readonly { readonly id: string; readonly location: string }[];
  /** Files and folders that cannot be published, with the reason. */
  readonly problems: readonly { readonly name: string; readonly reason: string }[];
  /** Time of the list. */
  readonly seconds: number;
}

/** Datasets, and problems, that are shown at the beginning and at the end. */
const SHOWN = 10;

/**
 * Lists the datasets of a collection, and opens none.
 * @param looks Number of lists. Local files that were just written count when they are the same in two.
 * @throws ZpublishError `source-unreadable` if it cannot be listed.
 */
export async function inspectCollection(
  location: string,
  provider: DatasetProvider,
  looks = 1,
): Promise<CollectionInspection> {
  const { signal } = new AbortController();
  const beganMs = performance.now();
  let ids = await provider.list(signal);
  const seconds = Math.round(performance.now() - beganMs) / 1_000;
  for (let look = 1; look < looks; look++) ids = await provider.list(signal);
  const datasets: { id: string; location: string }[] = [];
  for (const id of [...ids].sort()) {
    const dataset = await provider.open(id);
    if (dataset !== undefined) datasets.push({ id: `${provider.prefix}${id}`, location: dataset.location });
  }
  return { location, datasets, problems: provider.problems?.() ?? [], seconds };
}

/** Writes what a folder has as text: the first and the last datasets and problems. */
export function formatCollection({ location, datasets, problems, seconds }: CollectionInspection): string {
  const width = Math.max("id".length, ...bounded(datasets).map(({ id }) => printable(id).length));
  const rows = bounded(datasets).map(
    ({ id, location }) => `  ${printable(id).padEnd(width)}  ${printable(location)}`,
  );
  const lines = problems.map(({ name, reason }) => `  ${printable(name)}: ${printable(reason)}`);
  return [
    `${printable(location)}: ${countOf(datasets.length, "dataset")}, listed in ${seconds} s`,
    ...(rows.length === 0
      ? []
      : ["", `  ${"id".padEnd(width)}  location`, ...withRest(rows, datasets.length)]),
    ...(lines.length === 0
      ? []
      : ["", `${countOf(problems.length, "problem")}:`, ...withRest(bounded(lines), lines.length)]),
    "",
  ].join("\n");
}

/** Returns the first and the last items of many. */
function bounded<T>(items: readonly T[]): readonly T[] {
  return items.length <= 2 * SHOWN + 1 ? items : [...items.slice(0, SHOWN), ...items.slice(-SHOWN)];
}

/** Puts a line about those that are left out between the first and the last lines. */
function withRest(lines: readonly string[], total: number): string[] {
  const rest = total - lines.length;
  if (rest === 0) return [...lines];
  return [...lines.slice(0, SHOWN), `  … ${rest} more`, ...lines.slice(SHOWN)];
}
