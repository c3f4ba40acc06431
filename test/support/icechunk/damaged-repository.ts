import { messageOf, ZpublishError } from "../../../src/errors.js";
import { elementCount, gridShapeOf } from "../../../src/model/data-tree.js";
import { openChunkReader } from "../../../src/open/chunk-reader.js";
import { openSource } from "../../../src/open/open-source.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import type { Repository } from "./open-icechunk.js";

/**
 * What a repository holds, by key of its Zarr store: of a document, shape and chunks of the array; of a chunk, its bytes in hexadecimal;
 * `absent` and `refused` for either.
 */
export type Reading = ReadonlyMap<string, string>;

/** Chunks of an array that are read, so that a damaged shape costs little time. */
const MAX_CHUNKS = 64;
/** Codes of errors that say what is wrong with the data. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...["invalid-metadata", "unsupported", "source-unreadable", "source-changed", "corrupt-chunk"],
]);
/** Time for a repository of some kilobytes, on a busy machine. */
const TIMEOUT_MS = 60_000;

/** Reads all arrays of a small repository, and every chunk of them. @throws Error for a failure that no data may cause, and after a minute. */
export async function readRepository(path: string): Promise<Reading> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("it took a minute")), TIMEOUT_MS);
  });
  try {
    return await Promise.race([readAll(path), late]);
  } finally {
    clearTimeout(timer);
  }
}

async function readAll(path: string): Promise<Reading> {
  const answers = new Map<string, string>();
  const opened = await refusable(async () => {
    const source = await openSource(`icechunk:${path}`, { freshness: "immutable" });
    return { source, tree: await source.readTree() };
  });
  if (opened === "refused") return answers;
  const { source, tree } = opened;
  for (const { path: refused } of tree.refused) answers.set(`${refused}/zarr.json`, "refused");
  for (const array of tree.groups.flatMap(({ arrays }) => arrays)) {
    const { shape, chunkShape } = array;
    answers.set(`${array.path}/zarr.json`, JSON.stringify([shape, chunkShape]));
    await readChunks(array, answers);
  }
  await source.close();
  return answers;
}

async function readChunks(array: StoredArray, answers: Map<string, string>): Promise<void> {
  const reader = openChunkReader(array.chunks);
  const grid = gridShapeOf(array.shape, array.chunkShape);
  for (let number = 0; number < Math.min(MAX_CHUNKS, elementCount(grid)); number++) {
    const coords = grid.map(() => 0);
    let rest = number;
    for (let axis = grid.length - 1; axis >= 0; axis--) {
      coords[axis] = rest % grid[axis]!;
      rest = Math.floor(rest / grid[axis]!);
    }
    const chunk = await refusable(async () => (await reader.read(coords)) ?? "absent");
    const bytes = typeof chunk === "string" ? chunk : Buffer.from(chunk.bytes).toString("hex");
    answers.set(`${array.path}/c/${coords.join("/")}`, bytes);
  }
}

/** @throws Error if it failed for another reason than the data. */
async function refusable<T>(work: () => Promise<T>): Promise<T | "refused"> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ZpublishError && REFUSALS.has(error.code) && error.message !== "") return "refused";
    const code = error instanceof ZpublishError ? error.code : "";
    throw new Error(`expected a refusal by name, received ${code} ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Returns the keys whose answer is neither that of the sound repository nor a refusal. A repository that is refused as a whole has no
 * such keys, and nor has an array. Chunks of an array that is not there, or outside of its shape, are absent as its document says: of these, the
 * document alone is such a key.
 */
export function differencesOf(reading: Reading, sound: Reading): string[] {
  if (reading.size === 0) return [];
  const keys = new Set([...sound.keys(), ...reading.keys()]);
  return [...keys].filter((key) => {
    const answer = reading.get(key);
    if (answer === undefined) return key.endsWith("/zarr.json");
    return answer !== "refused" && answer !== sound.get(key);
  });
}

/** What Icechunk itself has for a key, as in a {@link Reading}. */
export async function askIcechunk(repository: Repository, key: string): Promise<string> {
  let value: Buffer | null | undefined;
  try {
    value = Object.values(await repository.read({ branch: "main" }, [key]))[0];
  } catch {
    return "refused";
  }
  if (value === null || value === undefined) return "absent";
  if (!key.endsWith("zarr.json")) return value.toString("hex");
  const { shape, chunk_grid } = JSON.parse(value.toString());
  return JSON.stringify([shape, chunk_grid?.configuration?.chunk_shape]);
}
