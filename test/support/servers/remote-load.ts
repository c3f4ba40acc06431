import type { Test } from "tap";
import { createRandom } from "../../../bench/random.js";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { openSource } from "../../../src/open/open-source.js";
import { setSourceTimeout } from "../../../src/stores/file-calls.js";
import type { Freshness } from "../../../src/stores/object-versions.js";
import { datasetOf } from "../datasets/sample-tree.js";
import type { Fault } from "../origins/fault.js";
import { type FaultyOrigin, startFaultyOrigin } from "../origins/faulty-origin.js";
import { v3Array, v3Group, zarray, zgroup } from "../write-store.js";
import { type RunningServer, startServer } from "./start-server.js";

/** Bytes of a stored chunk. */
const CHUNK = 8;
/** Milliseconds within which an origin that is sound answers, on a busy machine too. */
export const PATIENT_MS = 20_000;
/** Stored chunks of each array; the last one is absent. */
const COUNT = 8;
/** Inner chunks of a shard. */
const PER_SHARD = 4;
/** A chunk that the server has to answer with these bytes; undefined if it is absent. */
export interface ExpectedChunk {
  readonly path: string;
  readonly bytes: string | undefined;
}

/** Everything that goes wrong with an origin for a while, but never a 404. */
const FAULTS: readonly Fault[] = [
  { status: 503 },
  { status: 503, retryAfter: "0" },
  { status: 429 },
  { status: 500 },
  { status: 403 },
  { status: 401 },
  { code: "SlowDown" },
  { code: "AccessDenied" },
  { code: "ExpiredToken" },
  { hang: "before-headers" },
  { hang: "after-headers" },
  { disconnect: true },
  { redirect: "http://127.0.0.1:1/elsewhere" },
  { html: true },
  { ignoreRange: true },
  { contentRange: "bytes 0-7/8" },
  { contentRange: null },
  { gzip: true },
  { chunked: true },
  { lengthError: 3 },
  { lengthError: -3 },
  { cutAfter: 3 },
  { cutAfter: 3, chunked: true },
  { trickle: { bytes: 3, ms: 1 } },
  { delay: 30 },
  { etag: '"other"' },
  { etag: null, lastModified: null },
  { etag: 'W/"weak"' },
];

/** Returns the byte of which a stored chunk is made, in its first version. */
function letterOf(chunk: number): string {
  return String.fromCharCode(97 + chunk);
}

/** Joins inner chunks and their index to a shard, without checksum. */
export function shardOf(chunks: readonly (string | undefined)[]): Buffer {
  const index = Buffer.alloc(chunks.length * 16, 0xff);
  let offset = 0;
  for (const [i, chunk] of chunks.entries()) {
    if (chunk === undefined) continue;
    index.writeBigUInt64LE(BigInt(offset), i * 16);
    index.writeBigUInt64LE(BigInt(chunk.length), i * 16 + 8);
    offset += chunk.length;
  }
  return Buffer.concat([Buffer.from(chunks.join("")), index]);
}

const shape = [CHUNK * COUNT];
const V2_ARRAY = { ...zarray, shape, chunks: [CHUNK] };
const V3_ARRAY = {
  ...v3Array,
  shape,
  chunk_grid: { name: "regular", configuration: { chunk_shape: [CHUNK * PER_SHARD] } },
  codecs: [
    {
      name: "sharding_indexed",
      configuration: {
        chunk_shape: [CHUNK],
        codecs: [{ name: "bytes" }],
        index_codecs: [{ name: "bytes", configuration: { endian: "little" } }],
      },
    },
  ],
};

/** Starts an origin with two stores: `files`, v2, and `shards`, v3. */
export async function startStores(t: Test): Promise<FaultyOrigin> {
  const origin = await startFaultyOrigin(t);
  const put = (key: string, document: object) => origin.put(key, JSON.stringify(document));
  const metadata = { ".zgroup": zgroup, "v/.zarray": V2_ARRAY };
  put("files/.zmetadata", { zarr_consolidated_format: 1, metadata });
  const listing = { kind: "inline", must_understand: false, metadata: { v: V3_ARRAY } };
  put("shards/zarr.json", { ...v3Group, consolidated_metadata: listing });
  const chunks = Array.from({ length: COUNT }, (_, i) =>
    i < COUNT - 1 ? letterOf(i).repeat(CHUNK) : undefined,
  );
  for (const [i, chunk] of chunks.entries()) if (chunk !== undefined) origin.put(`files/v/${i}`, chunk);
  for (let i = 0; i * PER_SHARD < COUNT; i++)
    origin.put(`shards/v/c/${i}`, shardOf(chunks.slice(i * PER_SHARD, (i + 1) * PER_SHARD)));
  return origin;
}

/** Serves stores of origins, each as it is stored and in chunks of half and of twice the size, by one worker. */
export async function serveStores(
  t: Test,
  origins: Readonly<Record<string, FaultyOrigin>>,
  freshness: Freshness,
): Promise<RunningServer> {
  const encodings = {
    stored: {},
    packed: { compressor: { id: "gzip", level: 1 } },
    halved: { chunks: [CHUNK / 2], compressor: null },
    doubled: { chunks: [2 * CHUNK], compressor: null },
  };
  const datasets = [];
  for (const [name, { url }] of Object.entries(origins)) {
    for (const store of ["files", "shards"]) {
      for (const [as, encoding] of Object.entries(encodings)) {
        const source = await openSource(`${url}/${store}/`, { freshness });
        datasets.push(datasetOf(`${name}-${store}-${as}`, source, { encoding }));
      }
    }
  }
  const server = await startServer(t, { datasets, limits: optionConfig(defaultValues({})).limits });
  setSourceTimeout(PATIENT_MS);
  return server;
}

/** Lists all chunks of an origin's datasets. */
export function chunksOf(origin: string): ExpectedChunk[] {
  return ["files", "shards"].flatMap((store) => {
    const path = (as: string, key: number) => `/datasets/${origin}-${store}-${as}/zarr/v/${key}`;
    const all = Array.from({ length: COUNT }, (_, i) =>
      i < COUNT - 1 ? letterOf(i).repeat(CHUNK) : undefined,
    );
    return [
      ...all.map((bytes, i) => ({ path: path("stored", i), bytes })),
      ...all.flatMap((bytes, i) =>
        [0, 1].map((half) => ({ path: path("halved", 2 * i + half), bytes: bytes?.slice(CHUNK / 2) })),
      ),
      ...Array.from({ length: COUNT / 2 }, (_, i) => {
        const parts = [all[2 * i], all[2 * i + 1] ?? "\0".repeat(CHUNK)];
        return { path: path("doubled", i), bytes: parts.join("") };
      }),
    ];
  });
}

/** Lists the chunks of an origin's datasets that are compressed on the way: their stored bytes are not kept. */
export function packedChunksOf(origin: string): string[] {
  return ["files", "shards"].flatMap((store) =>
    Array.from({ length: COUNT - 1 }, (_, i) => `/datasets/${origin}-${store}-packed/zarr/v/${i}`),
  );
}

/** Returns what is wrong with the answer for a chunk; undefined for right bytes, and for failures if they are allowed. */
export async function problemOf(
  { get }: RunningServer,
  { path, bytes }: ExpectedChunk,
  mayFail: boolean,
): Promise<string | undefined> {
  const answer = await get(path);
  const body = await answer.text();
  const isRight =
    answer.status === 200
      ? body === bytes && answer.headers.get("content-length") === String(bytes?.length)
      : answer.status === 404
        ? bytes === undefined
        : mayFail && answer.status >= 500;
  return isRight ? undefined : `${path}: ${answer.status} ${JSON.stringify(body)}`;
}

/** Chooses faults at random. @param share Share of the requests that fail. */
export function createFaults(seed: number, share: number): () => Fault | undefined {
  const random = createRandom(seed);
  return () => (random() < share ? FAULTS[Math.floor(random() * FAULTS.length)] : undefined);
}
