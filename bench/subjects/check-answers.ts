import { isDeepStrictEqual } from "node:util";
import Blosc from "numcodecs/blosc";
import Zstd from "numcodecs/zstd";
import { type BenchStore, boxOf, storedBytes } from "../data/bench-data.js";
import { fieldValues } from "../data/field.js";
import { storePath } from "./subject.js";

/** The answer is, byte by byte, `expected`. @throws Error */
export async function checkSame(baseUrl: string, path: string, expected: Buffer): Promise<void> {
  const body = await fetchBody(baseUrl, path);
  if (!body.equals(expected)) {
    throw new Error(
      `${path}: expected ${expected.length} bytes, received ${body.length} bytes that are not the same`,
    );
  }
}

/** A chunk, decoded as the subject's own `.zarray` says, holds the field's values, byte by byte. @throws Error */
export async function checkDecoded(
  baseUrl: string,
  store: BenchStore,
  keys: readonly string[],
): Promise<void> {
  const { chunks, compressor, dtype, filters } = JSON.parse(
    (await fetchBody(baseUrl, storePath(store, "field/.zarray"))).toString(),
  );
  if (dtype !== "<f4" || (filters !== null && filters.length > 0)) {
    throw new Error(`field: expected <f4 without filters, received ${dtype} with ${JSON.stringify(filters)}`);
  }
  const codec = { blosc: Blosc, zstd: Zstd }[compressor?.id as string]?.fromConfig(compressor);
  if (codec === undefined)
    throw new Error(`field: expected blosc or zstd, received ${JSON.stringify(compressor)}`);
  for (const key of keys) {
    const decoded = await codec.decode(await fetchBody(baseUrl, storePath(store, key)));
    const values = fieldValues(boxOf(key, chunks));
    if (!Buffer.from(values.buffer).equals(decoded))
      throw new Error(`${key}: the values are not those of the field`);
  }
}

/** `/info` and `.zmetadata` say what is stored. @throws Error */
export async function checkDocument(baseUrl: string, store: BenchStore, path: string): Promise<void> {
  const answer = JSON.parse((await fetchBody(baseUrl, path)).toString());
  const { metadata } = JSON.parse(storedBytes(store, ".zmetadata").toString());
  if (path.endsWith("/.zmetadata")) {
    for (const [key, expected] of Object.entries(metadata)) {
      if (!isDeepStrictEqual(answer.metadata?.[key], expected)) {
        throw new Error(
          `${path}: ${key}: expected ${JSON.stringify(expected)}, received ${JSON.stringify(answer.metadata?.[key])}`,
        );
      }
    }
    return;
  }
  const { shape } = metadata["field/.zarray"];
  const expected = { time: shape[0], y: shape[1], x: shape[2] };
  const { type, dimensions } = answer.variables?.field ?? {};
  if (
    type !== "float32" ||
    !isDeepStrictEqual(dimensions, ["time", "y", "x"]) ||
    !isDeepStrictEqual(answer.dimensions, expected)
  ) {
    throw new Error(
      `${path}: expected field as float32 of ${JSON.stringify(expected)}, received ${JSON.stringify(answer).slice(0, 500)}`,
    );
  }
}

/** @returns The ETag that is answered 304 without a body. @throws Error */
export async function checkNotModified(baseUrl: string, path: string): Promise<string> {
  const etag = (await fetchAnswer(baseUrl, path)).headers.get("etag");
  if (etag === null) throw new Error(`${path}: expected an ETag, received none`);
  const { status, body } = await fetchAnswer(baseUrl, path, { "if-none-match": etag });
  if (status !== 304 || body.length > 0) {
    throw new Error(
      `${path}: expected 304 without a body for its own ETag, received ${status} and ${body.length} bytes`,
    );
  }
  return etag;
}

const WARM_TRIES = 10;

/** Asks for every path until zpublish answers all of them from its cache. @throws Error where it never does. */
export async function warmCache(baseUrl: string, paths: readonly string[]): Promise<void> {
  let waiting = [...paths];
  for (let i = 0; i < WARM_TRIES && waiting.length > 0; i++) {
    const misses: string[] = [];
    for (const path of waiting) {
      const { headers } = await fetchAnswer(baseUrl, path);
      if (headers.get("x-cache") !== "HIT") misses.push(path);
    }
    waiting = misses;
  }
  if (waiting.length > 0) {
    throw new Error(
      `${waiting.length} of ${paths.length} chunks are not answered from the cache, ${waiting[0]} for one`,
    );
  }
}

/** One answer, whole. */
export interface FetchedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Asks as the load does: without compression, following nothing. */
export async function fetchAnswer(
  baseUrl: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<FetchedAnswer> {
  const response = await fetch(baseUrl + path, {
    headers: { "accept-encoding": "identity", ...headers },
    redirect: "manual",
  });
  return {
    status: response.status,
    headers: response.headers,
    body: Buffer.from(await response.arrayBuffer()),
  };
}

/** The body of a 200. @throws Error for another status. */
export async function fetchBody(baseUrl: string, path: string): Promise<Buffer> {
  const { status, body } = await fetchAnswer(baseUrl, path);
  if (status !== 200)
    throw new Error(`${path}: expected status 200, received ${status}: ${body.subarray(0, 300)}`);
  return body;
}
