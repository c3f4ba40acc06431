import { asNumber, asText, option } from "./option-spec.js";
import { byteSizeFrom, integerSchema, secondsSchema } from "./value-schemas.js";

const count = (summary: string, max: number, defaultCount: number) =>
  option({
    placeholder: "count",
    summary,
    schema: integerSchema(1, max),
    fromText: asNumber,
    defaultValue: () => defaultCount,
  });

const seconds = (summary: string, min: number, max: number, defaultSeconds: number) =>
  option({
    placeholder: "seconds",
    summary,
    schema: secondsSchema(min, max),
    fromText: asNumber,
    defaultValue: () => defaultSeconds,
  });

const size = (
  summary: string,
  minBytes: number,
  maxBytes: number,
  defaultBytes: number,
  defaultText: string,
) =>
  option({
    placeholder: "size",
    summary,
    schema: byteSizeFrom(minBytes, maxBytes),
    fromText: asText,
    defaultValue: () => defaultBytes,
    defaultText,
  });

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const GIB = 2 ** 30;

/** Options about bounds and draining. `scripts/deploy/README.md` says what happens at each bound. */
export const LIMIT_OPTIONS = {
  maxConnections: count("Connections at a time; further ones are closed", 1_000_000, 10_000),
  maxRequests: count("Requests in flight at a time", 1_000_000, 16_384),
  maxPages: count("Requests in flight from which on pages and metadata get 503", 1_000_000, 8_192),
  maxResponseBytes: size(
    "Bodies that are being made or sent; at the bound, chunks wait",
    MIB,
    2 ** 50,
    GIB,
    "1GiB",
  ),
  maxQueuedChunks: count("Chunks that wait for a worker, or for the disk", 10_000_000, 16_384),
  maxHeaderSize: size(
    "Request line and headers that come in pieces, and headers of requests that wait; longer ones get 431",
    4 * KIB,
    MIB,
    16 * KIB,
    "16KiB",
  ),
  maxUrlLength: size("Path and query of a request; longer ones get 414", 256, MIB, 8 * KIB, "8KiB"),
  requestTimeout: seconds("Time until an answer begins; after it 503", 1, 86_400, 150),
  stallTimeout: seconds(
    "Time after which a client that reads nothing of its answer is dropped",
    1,
    86_400,
    60,
  ),
  chunkTimeout: seconds("Time of one chunk in a worker; after it 500, and another worker", 1, 86_400, 120),
  sourceTimeout: seconds("Time of one call to a source; after it 500", 1, 86_400, 30),
  workerMemory: size("JavaScript heap of one worker", 64 * MIB, 2 ** 40, 512 * MIB, "512MiB"),
  maxOpenDatasets: count(
    "Datasets of collections and plugins that each process has open at a time",
    1_000_000,
    1_000,
  ),
  maxChunkSize: size("Decoded size of a chunk that is not passed through", MIB, 2 * GIB, GIB, "1GiB"),
  drainDelay: seconds("Time to answer as before, but not ready, after TERM or INT", 0, 3_600, 0),
  drainTimeout: seconds("Time to finish requests in flight after that", 0, 3_600, 30),
};
