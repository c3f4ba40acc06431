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

/** The bounds of a server, and how long it takes its leave. What happens at each is in the README. */
export const LIMIT_OPTIONS = {
  maxConnections: count("Connections at once; another is closed at once", 1_000_000, 10_000),
  maxRequests: count("Requests being answered at once", 1_000_000, 16_384),
  maxPages: count("The same of pages and metadata, which are shed first", 1_000_000, 8_192),
  maxResponseBytes: size(
    "Bodies being made or not taken yet by clients; beyond it chunks wait",
    MIB,
    2 ** 50,
    GIB,
    "1GiB",
  ),
  maxQueuedChunks: count("Chunks that wait for a worker, or for the disk", 10_000_000, 16_384),
  maxHeaderSize: size(
    "Request line and headers that come in pieces, and headers of requests that wait; beyond it 431",
    4 * KIB,
    MIB,
    16 * KIB,
    "16KiB",
  ),
  maxUrlLength: size("Path and query of a request; beyond it 414", 256, MIB, 8 * KIB, "8KiB"),
  requestTimeout: seconds("Until an answer begins; beyond it 503", 1, 86_400, 150),
  stallTimeout: seconds("A client that takes nothing of its answer for so long is dropped", 1, 86_400, 60),
  chunkTimeout: seconds("One chunk in a worker; beyond it 500, and another worker", 1, 86_400, 120),
  sourceTimeout: seconds("One look at, or read from, a source; beyond it 500", 1, 86_400, 30),
  workerMemory: size("JavaScript heap of one worker", 64 * MIB, 2 ** 40, 512 * MIB, "512MiB"),
  maxChunkSize: size("What a chunk that is not served as stored may decode to", MIB, 2 * GIB, GIB, "1GiB"),
  drainDelay: seconds("At TERM and INT, go on as before for so long, but not ready", 0, 3_600, 0),
  drainTimeout: seconds("Then finish what is in flight for so long at most", 0, 3_600, 30),
};
