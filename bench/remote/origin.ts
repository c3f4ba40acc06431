import { createReadStream, readdirSync, statSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startChild, stopChild, waitForLine } from "../children.js";

/** A web server of its own process with the files of a directory, which is also a bucket called `bucket`. */
export interface Origin {
  /** URL of the directory, without a slash at its end. */
  readonly url: string;
  /** URL of the S3 service that has the bucket. */
  readonly endpoint: string;
  /** Requests since the last call. */
  takeCount(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts an origin. @param delayMs Time before each answer */
export async function startOrigin(directory: string, delayMs: number): Promise<Origin> {
  const child = await startChild(process.execPath, [import.meta.filename, directory, String(delayMs)]);
  const [, endpoint] = await waitForLine(child, /ready on (http:\/\/\S+)/);
  return {
    url: `${endpoint}/bucket`,
    endpoint: endpoint as string,
    takeCount: async () => Number(await (await fetch(`${endpoint}/count`)).text()),
    stop: () => stopChild(child),
  };
}

const NAMES_PER_PAGE = 1_000;

function main(directory: string, delayMs: number): void {
  let count = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://origin");
    if (url.pathname === "/count") {
      response.end(String(count));
      count = 0;
      return;
    }
    count++;
    if (delayMs > 0) await delay(delayMs);
    const key = decodeURIComponent(url.pathname).replace(/^\/bucket\/?/, "");
    if (url.searchParams.get("list-type") === "2") sendListing(directory, url.searchParams, response);
    else sendFile(join(directory, key), request, response);
  }

  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, "127.0.0.1", () =>
    console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  );
}

function sendFile(path: string, request: IncomingMessage, response: ServerResponse): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isFile()) {
    response.writeHead(404).end();
    return;
  }
  const etag = `"${found.mtimeMs.toString(36)}-${found.size}"`;
  if (request.headers["if-none-match"] === etag) {
    response.writeHead(304, { etag }).end();
    return;
  }
  const asked = /^bytes=(\d*)-(\d*)$/.exec(request.headers.range ?? "");
  const start = asked?.[1] ? Number(asked[1]) : asked ? Math.max(0, found.size - Number(asked[2])) : 0;
  const end = asked?.[1] && asked[2] ? Math.min(Number(asked[2]), found.size - 1) : found.size - 1;
  const range = asked === null ? {} : { "content-range": `bytes ${start}-${end}/${found.size}` };
  response.writeHead(asked === null ? 200 : 206, { etag, ...range, "content-length": end - start + 1 });
  if (request.method === "HEAD") response.end();
  else createReadStream(path, { start, end, highWaterMark: 2 ** 20 }).pipe(response);
}

/** Lists the names directly below a prefix as S3 does, page by page. */
function sendListing(directory: string, query: URLSearchParams, response: ServerResponse): void {
  const prefix = query.get("prefix") ?? "";
  const entries = readdirSync(join(directory, prefix), { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  const from = Number(query.get("continuation-token") ?? 0);
  const page = names.slice(from, from + NAMES_PER_PAGE);
  const isTruncated = from + page.length < names.length;
  const items = page.map((name) => {
    const key = encodeURIComponent(prefix + name);
    return name.endsWith("/")
      ? `<CommonPrefixes><Prefix>${key}</Prefix></CommonPrefixes>`
      : `<Contents><Key>${key}</Key></Contents>`;
  });
  const next = isTruncated ? `<NextContinuationToken>${from + page.length}</NextContinuationToken>` : "";
  response.end(
    `<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>${isTruncated}</IsTruncated>${next}${items.join("")}</ListBucketResult>`,
  );
}

const [, script, directory, delayMs] = process.argv;
if (script === import.meta.filename) main(directory as string, Number(delayMs));
