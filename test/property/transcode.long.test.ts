import { rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { pino } from "pino";
import t from "tap";
import { createNullCache } from "../../src/cache/chunk-cache.js";
import { openMaintainedChunkCache } from "../../src/cache/open-cache.js";
import type { ChunkService } from "../../src/chunk/chunk-service.js";
import { createChunkService } from "../../src/chunk/serve-chunk.js";
import type { EncodingConfig } from "../../src/config/config.js";
import type { DatasetSnapshot, ServedArray } from "../../src/dataset/dataset.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { ZpublishError } from "../../src/errors.js";
import { openSource } from "../../src/open/open-source.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { effort } from "../support/effort.js";
import { makeDirectory } from "../support/write-store.js";
import {
  type ArraySpec,
  arrayArbitrary,
  chainArbitrary,
  chunkShapeArbitrary,
  count,
  fillOf,
  forEachItem,
  gridOf,
  writeStore,
} from "./random-store.js";
import { configOf, decodeAs } from "./reference-codecs.js";

const RUNS = effort(150);
const MAX_BYTES = 64 * 2 ** 20;

/** An array, and what is asked of it. */
const caseArbitrary = arrayArbitrary.chain((spec) =>
  fc.record({
    spec: fc.constant(spec),
    chunks: fc.option(chunkShapeArbitrary(spec.shape), { nil: undefined }),
    chain: fc.option(chainArbitrary, { nil: undefined }),
  }),
);

type Case = typeof caseArbitrary extends fc.Arbitrary<infer T> ? T : never;

t.setTimeout(600_000);

/** Makes chunks in this thread. */
function withoutPool() {
  const run = createTaskRunner();
  return (task: ChunkTask) => run(task);
}

t.test("whatever is asked for, a client reads the array as it was written", async (t) => {
  const directory = await makeDirectory(t);
  const cache = await openMaintainedChunkCache({
    directory: join(directory, "cache"),
    maxBytes: MAX_BYTES,
    log: pino({ level: "silent" }),
    version: "0.0.0-test",
  });
  if (cache === undefined) throw new Error("the cache did not open");
  t.teardown(() => cache.close());
  const service = createChunkService({ cache: { current: cache }, makeChunk: withoutPool() });
  let number = 0;
  await fc.assert(
    fc.asyncProperty(caseArbitrary, async (input) => {
      const location = join(directory, `${number++}.zarr`);
      const truth = await writeStore(location, input.spec);
      const stored = await openStore(location, {});
      const served = await openStore(location, encodingOf(input));
      same(await readServed(service, stored, input.spec), truth, "passed through");
      const fresh = await readServed(service, served, input.spec);
      same(fresh, truth, `transcoded (${served.array.plan.kind})`);

      await cache.settle();
      await isTheSameAgain(service, served);
      await rm(location, { recursive: true });
    }),
    { numRuns: RUNS },
  );
  const { hits, errors } = cache.stats;
  // Of some cases all chunks are absent.
  t.ok(hits > RUNS / 10, `${hits} chunks came from the cache`);
  t.equal(errors, 0);
});

interface OpenedStore {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
}

function encodingOf({ spec, chunks, chain }: Case): EncodingConfig {
  const codecs = chain && (configOf(chain, spec.type.itemSize) as EncodingConfig);
  return { ...(chunks && { chunks }), ...codecs };
}

async function openStore(location: string, encoding: EncodingConfig): Promise<OpenedStore> {
  const source = await openSource(location);
  const tree = await source.readTree();
  await source.close();
  const config = { id: "d", location, immutable: false, encoding, variables: {} };
  const snapshot = createSnapshot(config, tree, "no-cache");
  const array = snapshot.arrays.get("a");
  if (array === undefined) throw new Error(`refused: ${JSON.stringify(snapshot.refused)}`);
  return { snapshot, array };
}

interface Fetched {
  readonly bytes: Uint8Array;
  readonly state: string | undefined;
  readonly etag: string;
}

/** One chunk as the HTTP layer would get it; undefined where that would be a 404. */
async function fetchChunk(
  service: ChunkService,
  { snapshot, array }: OpenedStore,
  coords: readonly number[],
): Promise<Fetched | undefined> {
  try {
    const reply = await service.serve(snapshot, array, { key: coords.join(".") || "0" });
    const body = await reply.open(
      { signal: new AbortController().signal, reserve: () => undefined, started: false },
      (byteLength) => ({ start: 0, byteLength }),
    );
    const bytes = body.read(0);
    if (bytes === undefined) throw new Error("the body is gone");
    const state = body.headers.find(([name]) => name === "X-Cache")?.[1];
    // The view is valid in this turn of the event loop only.
    return { bytes: Uint8Array.from(bytes.subarray(0, body.byteLength)), state, etag: reply.etag };
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "not-found") return undefined;
    throw error;
  }
}

/** Chunks from the cache, and chunks of a service that has none, are the same bytes under the same ETag. */
async function isTheSameAgain(service: ChunkService, opened: OpenedStore): Promise<void> {
  const { document } = opened.array;
  const uncached = createChunkService({ cache: { current: createNullCache() }, makeChunk: withoutPool() });
  for (const coords of gridOf(document.shape, document.chunks).slice(0, 12)) {
    const cached = await fetchChunk(service, opened, coords);
    const fresh = await fetchChunk(uncached, opened, coords);
    if (cached?.etag !== fresh?.etag)
      throw new Error(`ETag of ${coords}: ${cached?.etag} and ${fresh?.etag}`);
    if (cached === undefined || fresh === undefined) continue;
    same(cached.bytes, fresh.bytes, `chunk ${coords} from the cache (${cached.state})`);
  }
}

function same(received: Uint8Array, expected: Uint8Array, what: string): void {
  if (Buffer.compare(received, expected) === 0) return;
  const first = received.findIndex((byte, index) => byte !== expected[index]);
  throw new Error(`${what}: ${received.length} of ${expected.length} bytes, first difference at ${first}`);
}

/**
 * Reads the items of an array in C order, chunk by chunk as a client does, knowing only the served document.
 * @throws Error if a chunk has another length than the document says, or is made and padded with other items than fill values.
 */
async function readServed(service: ChunkService, opened: OpenedStore, spec: ArraySpec): Promise<Uint8Array> {
  const { document, plan } = opened.array;
  const { itemSize } = spec.type;
  const fill = fillOf(spec);
  const layout = { shape: document.shape, chunkShape: document.chunks, order: document.order };
  const values = new Uint8Array(count(document.shape) * itemSize);
  for (const coords of gridOf(document.shape, document.chunks)) {
    const fetched = await fetchChunk(service, opened, coords);
    const chunk = fetched && (await decodeAs(fetched.bytes, document, itemSize));
    if (chunk !== undefined && chunk.length !== count(document.chunks) * itemSize)
      throw new Error(`length of ${coords}`);
    const inside = new Set<number>();
    forEachItem(layout, coords, (inArray, inChunk) => {
      inside.add(inChunk);
      const item = chunk?.subarray(inChunk * itemSize, (inChunk + 1) * itemSize) ?? fill;
      values.set(item, inArray * itemSize);
    });
    if (chunk !== undefined && plan.kind === "rechunk" && !isPadded(chunk, inside, fill))
      throw new Error(`padding of ${coords}`);
  }
  return values;
}

function isPadded(chunk: Uint8Array, inside: ReadonlySet<number>, fill: Uint8Array): boolean {
  for (let item = 0; item * fill.length < chunk.length; item++) {
    if (inside.has(item)) continue;
    if (fill.some((byte, index) => chunk[item * fill.length + index] !== byte)) return false;
  }
  return true;
}
