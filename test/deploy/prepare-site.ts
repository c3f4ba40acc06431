import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { makeDirectory, type Teardown, writeFiles, zgroup } from "../support/write-store.js";
import { type Expected, fetchBody } from "./checked-load.js";

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
    ".zgroup": zgroup,
    "noise/.zarray": {
      zarr_format: 2,
      shape: [chunks, chunkBytes],
      chunks: [1, chunkBytes],
      dtype: "|u1",
      compressor: null,
      fill_value: 0,
      order: "C",
      filters: null,
    },
    "noise/.zattrs": { _ARRAY_DIMENSIONS: ["n", "x"] },
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
