import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Agent, request } from "undici";
import { runChild } from "../children.js";

/** URLs to be read, each once. */
export interface ReadObjects {
  readonly urls: readonly string[];
  /** Requests at a time, each on a connection of its own. */
  readonly atOnce: number;
}

/** Result of {@link readObjects}. */
export interface ObjectsRead {
  readonly seconds: number;
  readonly bytes: number;
}

/**
 * Reads URLs by undici alone, in one loop, in a process of its own. It follows redirects, as clients do.
 * @throws Error if an answer is neither 200 nor a redirect
 */
export async function readObjects(work: ReadObjects, scratch: string): Promise<ObjectsRead> {
  const file = join(scratch, "urls.json");
  writeFileSync(file, JSON.stringify(work));
  return JSON.parse(await runChild(process.execPath, [import.meta.filename, file])) as ObjectsRead;
}

async function main({ urls, atOnce }: ReadObjects): Promise<void> {
  const dispatcher = new Agent({ connections: atOnce, pipelining: 1 });
  const waiting = urls.values();
  let bytes = 0;

  async function read(url: string): Promise<void> {
    const { statusCode, headers, body } = await request(url, { dispatcher });
    const content = await body.arrayBuffer();
    if (statusCode === 302 || statusCode === 307) return read(String(headers.location));
    if (statusCode !== 200) throw new Error(`${url}: ${statusCode}`);
    bytes += content.byteLength;
  }

  const began = performance.now();
  const readers = Array.from({ length: atOnce }, async () => {
    for (const url of waiting) await read(url);
  });
  await Promise.all(readers);
  const seconds = (performance.now() - began) / 1_000;
  process.stdout.write(JSON.stringify({ seconds, bytes } satisfies ObjectsRead));
  await dispatcher.close();
}

const [, script, file] = process.argv;
if (script === import.meta.filename)
  await main(JSON.parse(readFileSync(file as string, "utf8")) as ReadObjects);
