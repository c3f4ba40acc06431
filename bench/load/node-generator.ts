/** A process of its own: `node node-generator.js FILE` sends a `LoadRequest` (JSON) and prints its `LoadResult`. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { percentile } from "../statistics.js";
import type { LoadRequest, LoadResult } from "./load.js";

const HEAD_END = Buffer.from("\r\n\r\n");
const STATUS = /^HTTP\/1\.[01] (\d{3})/;
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;

const load = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as LoadRequest;
const { hostname, port, host, pathname } = new URL(load.baseUrl);
const headers = Object.entries(load.headers).map(([name, value]) => `${name}: ${value}\r\n`);
const requests = load.paths.map((path) =>
  Buffer.from(
    `GET ${pathname.replace(/\/+$/, "")}${path} HTTP/1.1\r\nHost: ${host}\r\n${headers.join("")}\r\n`,
    "latin1",
  ),
);

const latencies: number[] = [];
let failures = 0;
let next = 0;
const begin = performance.now();
const end = load.length === "once" ? Number.POSITIVE_INFINITY : begin + load.length.seconds * 1_000;

function takeRequest(): Buffer | undefined {
  if (performance.now() >= end) return undefined;
  if (load.length === "once" && next === requests.length) return undefined;
  return requests[next++ % requests.length];
}

/** One connection: the next request is sent when the last answer is whole. */
function runConnection(): Promise<void> {
  return new Promise((resolve) => {
    let head: Buffer = Buffer.alloc(0);
    /** Bytes of the body still to come; undefined while the head is. */
    let missing: number | undefined;
    let sentAt = 0;
    const socket = connect({ host: hostname, port: Number(port || 80), noDelay: true });

    function send(): void {
      const request = takeRequest();
      if (request === undefined) {
        socket.destroy();
        resolve();
        return;
      }
      sentAt = performance.now();
      socket.write(request);
    }
    function finish(): void {
      latencies.push(performance.now() - sentAt);
      missing = undefined;
      head = Buffer.alloc(0);
      send();
    }
    function fail(): void {
      failures++;
      socket.destroy();
      resolve();
    }

    socket.once("connect", send);
    socket.once("error", fail);
    socket.once("end", fail);
    socket.on("data", (data: Buffer) => {
      if (missing !== undefined) {
        missing -= data.length;
      } else {
        head = head.length === 0 ? data : Buffer.concat([head, data]);
        const headEnd = head.indexOf(HEAD_END);
        if (headEnd < 0) return;
        const text = head.toString("latin1", 0, headEnd);
        const status = Number(STATUS.exec(text)?.[1]);
        if (status !== load.status) failures++;
        const length = status === 304 ? "0" : CONTENT_LENGTH.exec(text)?.[1];
        // An answer without a length (in chunks, say) cannot be followed.
        if (length === undefined) return fail();
        missing = Number(length) - (head.length - headEnd - HEAD_END.length);
      }
      if (missing === 0) finish();
      else if (missing < 0) fail();
    });
  });
}

await Promise.all(Array.from({ length: load.connections }, runConnection));
const sorted = Float64Array.from(latencies).sort();
const result: LoadResult = {
  generator: "node",
  requests: latencies.length,
  seconds: (performance.now() - begin) / 1_000,
  p50: percentile(sorted, 50),
  p90: percentile(sorted, 90),
  p99: percentile(sorted, 99),
  failures,
};
console.log(JSON.stringify(result));
