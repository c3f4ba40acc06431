import { randomBytes } from "node:crypto";
import { Agent, get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import type { Test } from "tap";
import { createRandom } from "../../bench/random.js";
import { makeDirectory, type Teardown, writeFiles, zarray, zgroup } from "../support/write-store.js";

/** Data to publish, and what has to arrive of it. */
export interface DeploySite {
  readonly datasets: Readonly<Record<string, unknown>>;
  /**
   * What each path answers, asked of one instance. Chunks are held against what was written.
   */
  expected(port: number): Promise<ExpectedAnswers>;
}

/** What was asked for, by kind. */
export interface ExpectedAnswers {
  readonly documents: Expected[];
  /** The stored bytes. */
  readonly plain: Expected[];
  /** What inflates to them. */
  readonly packed: Expected[];
}

export interface SiteOptions {
  readonly name: string;
  readonly chunks: number;
  readonly chunkBytes: number;
}

/** Returns the documents of a store with the array `noise` of bytes, in chunks of one row each. */
export function siteDocuments(chunks: number, chunkBytes: number): Record<string, object> {
  const layout = { shape: [chunks, chunkBytes], chunks: [1, chunkBytes], dtype: "|u1" };
  return {
    ".zgroup": zgroup,
    "noise/.zarray": { ...zarray, ...layout },
    "noise/.zattrs": { _ARRAY_DIMENSIONS: ["n", "x"] },
  };
}

/** A store with one array, published as it is (`NAME`) and recompressed (`NAME-packed`). */
export async function prepareSite(
  t: Teardown,
  { name, chunks, chunkBytes }: SiteOptions,
): Promise<DeploySite> {
  const location = join(await makeDirectory(t), "noise.zarr");
  const stored = Array.from({ length: chunks }, (_, index) => {
    // Half of it compresses.
    const bytes = Buffer.alloc(chunkBytes, index);
    randomBytes(chunkBytes / 2).copy(bytes);
    return bytes;
  });
  await writeFiles(location, {
    ...siteDocuments(chunks, chunkBytes),
    ...Object.fromEntries(stored.map((bytes, index) => [`noise/${index}.0`, bytes])),
  });
  return {
    datasets: {
      [name]: location,
      [`${name}-packed`]: { location, encoding: { compressor: { id: "zlib", level: 1 } } },
    },
    async expected(port) {
      const ask = async (path: string, isRight: (body: Buffer) => boolean): Promise<Expected> => {
        const { answer, body } = await fetchBody(port, path);
        const { etag } = answer.headers;
        if (answer.statusCode !== 200 || etag === undefined || !isRight(body))
          throw new Error(`${path}: ${answer.statusCode} ${body.subarray(0, 300)}`);
        return { path, body, etag };
      };
      const documents = [
        `/datasets/${name}/keys`,
        `/datasets/${name}/info`,
        `/datasets/${name}-packed/zarr/.zmetadata`,
      ];
      return {
        documents: await Promise.all(documents.map((path) => ask(path, (body) => body.byteLength > 0))),
        plain: await Promise.all(
          stored.map((bytes, i) => ask(`/datasets/${name}/zarr/noise/${i}.0`, (body) => body.equals(bytes))),
        ),
        packed: await Promise.all(
          stored.map((bytes, i) =>
            ask(`/datasets/${name}-packed/zarr/noise/${i}.0`, (body) => inflateSync(body).equals(bytes)),
          ),
        ),
      };
    },
  };
}

/** Of a client between two requests, so that what else runs here gets its turn. */
const THINK_MS = 3;

/** What a path answers, always and from every instance. */
export interface Expected {
  readonly path: string;
  readonly body: Buffer;
  readonly etag: string;
}

/** What a load has seen so far. */
export interface LoadResult {
  requests: number;
  /** Of answers, by `X-Cache`. */
  readonly origins: Record<string, number>;
  /** Answers with another status than 200 or the 304 that was asked for, and requests without a whole answer. */
  readonly failures: string[];
  /** Answers that say they are right and are not. */
  readonly wrong: string[];
}

/** Clients that ask, each on a connection of its own that is kept, until they are told to stop. */
export interface Load {
  readonly result: LoadResult;
  /** Waits until so many more requests have come to an end, answered or failed. */
  more(requests: number): Promise<void>;
  stop(): Promise<LoadResult>;
}

export interface LoadOptions {
  readonly connections: number;
  readonly seed?: number;
}

/** Asks a port for these paths in a random order; every body is compared byte by byte. Stopped with the test. */
export function startLoad(
  t: Pick<Test, "teardown">,
  port: number,
  expected: readonly Expected[],
  options: LoadOptions,
): Load {
  const result: LoadResult = { requests: 0, origins: {}, failures: [], wrong: [] };
  const waiting = new Set<() => void>();
  let isStopped = false;

  async function ask(random: () => number, agent: Agent): Promise<void> {
    while (!isStopped) {
      const wanted = expected[Math.floor(random() * expected.length)]!;
      const isConditional = random() < 0.1;
      try {
        const headers = isConditional ? { "if-none-match": wanted.etag } : {};
        const { answer, body } = await fetchBody(port, wanted.path, headers, agent);
        const origin = answer.headers["x-cache"];
        if (typeof origin === "string") result.origins[origin] = (result.origins[origin] ?? 0) + 1;
        const about = `${wanted.path}: ${answer.statusCode}, ${body.byteLength} bytes, ${JSON.stringify(answer.headers)}`;
        const status = isConditional ? 304 : 200;
        if (answer.statusCode !== status) result.failures.push(`${about}: ${body.subarray(0, 300)}`);
        else if (answer.headers.etag !== wanted.etag) result.wrong.push(about);
        else if (!isConditional && !body.equals(wanted.body)) result.wrong.push(about);
      } catch (error) {
        result.failures.push(`${wanted.path}: ${(error as Error).message}`);
      }
      result.requests++;
      for (const wake of waiting) wake();
      await delay(THINK_MS);
    }
  }

  const agents: Agent[] = [];
  const clients = Array.from({ length: options.connections }, (_, i) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return ask(createRandom((options.seed ?? 1) * 1_000 + i), agent);
  });

  async function stop(): Promise<LoadResult> {
    isStopped = true;
    await Promise.all(clients);
    for (const agent of agents) agent.destroy();
    return result;
  }
  t.teardown(stop);

  return {
    result,
    stop,
    async more(requests) {
      const wanted = result.requests + requests;
      while (result.requests < wanted) {
        await new Promise<void>((resolve) => {
          const wake = () => {
            waiting.delete(wake);
            resolve();
          };
          waiting.add(wake);
        });
      }
    },
  };
}

/** One request, its body read to the end. Rejects where the connection fails, or ends in the middle of the body. */
export function fetchBody(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  agent: Agent | false = false,
): Promise<{ answer: IncomingMessage; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path, headers, agent }, (answer) => {
      const parts: Buffer[] = [];
      answer.on("data", (part: Buffer) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => resolve({ answer, body: Buffer.concat(parts) }));
    });
    request.on("error", reject);
  });
}

/** How a body ended; `cut off` is an end that says that something is missing. */
export type BodyEnd = "whole" | "cut off" | "wrong";

/** A body of which a part has been read, and the rest is on its way. */
export interface HeldBody {
  /** Reads the rest. */
  finish(): Promise<BodyEnd>;
}

/** Asks for a body and stops to read after the first piece; it should be larger than what sockets hold. */
export function holdBody(port: number, wanted: Expected): Promise<HeldBody> {
  return new Promise((resolve, reject) => {
    const request = get({ host: "127.0.0.1", port, path: wanted.path, agent: false }, (answer) => {
      let offset = 0;
      let isWrong = answer.statusCode !== 200;
      const ended = new Promise<BodyEnd>((end) => {
        answer.on("error", () => end(isWrong ? "wrong" : "cut off"));
        answer.on("end", () => end(isWrong || offset !== wanted.body.byteLength ? "wrong" : "whole"));
      });
      answer.on("data", (part: Buffer) => {
        if (!part.equals(wanted.body.subarray(offset, offset + part.byteLength))) isWrong = true;
        offset += part.byteLength;
        if (offset > part.byteLength) return;
        answer.pause();
        resolve({
          finish() {
            answer.resume();
            return ended;
          },
        });
      });
    });
    request.on("error", reject);
  });
}
