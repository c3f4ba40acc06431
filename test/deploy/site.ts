import { randomBytes } from "node:crypto";
import { type Agent, get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { makeDirectory, type Teardown, writeFiles, zarray, zgroup } from "../support/write-store.js";

/** Data to publish, and what has to arrive of it. */
export type DeploySite = Awaited<ReturnType<typeof prepareSite>>;

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
export async function prepareSite(t: Teardown, { name, chunks, chunkBytes }: SiteOptions) {
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
    /** What each path answers, asked of one instance. Chunks are held against what was written. */
    async expected(port: number) {
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

/** What a path answers, always and from every instance. */
export interface Expected {
  readonly path: string;
  readonly body: Buffer;
  readonly etag: string;
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
