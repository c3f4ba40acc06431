import { mapInLots } from "../event-loop/map-in-lots.js";
import type { ChunkReader } from "./chunk-reader.js";

/** Stored chunks of one array that are looked up at a time. */
const CONCURRENCY = 16;

/** Tells which of some chunks there are, and the first of them, if the reader has an index of chunks with one version. */
export function presentOf(reader: ChunkReader, stored: readonly (readonly number[])[]) {
  if (reader.has === undefined) return undefined;
  const are = stored.map((each) => reader.has?.(each) === true);
  return { are, first: stored[Math.max(0, are.indexOf(true))] ?? [] };
}

/** Looks up the versions of stored chunks of one array; undefined for absent ones. @throws ZpublishError `source-unreadable` */
export async function versionsOf(
  reader: ChunkReader,
  stored: readonly (readonly number[])[],
): Promise<(string | undefined)[]> {
  const present = presentOf(reader, stored);
  if (present === undefined) return mapInLots(stored, CONCURRENCY, (each) => reader.version(each));
  const shared = await reader.version(present.first);
  return present.are.map((isPresent) => (isPresent ? shared : undefined));
}
