/** A process of its own: `node node-generator.js FILE` sends a `LoadRequest` (JSON) and prints its `LoadResult`. */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { percentile } from "../statistics.js";
import type { LoadRequest, LoadResult } from "./load.js";
import { createAnswerReader, targetOf } from "./raw-http.js";

/**
 * One buffer for all connections, since nothing of a body is kept: a buffer per read costs as much again as everything
 * else here (590 KB: 125 µs of CPU per answer against 70, where wrk, which reads 8 KiB at a time, takes 115).
 */
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

const load = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as LoadRequest;
const target = targetOf(load.baseUrl);
const requests = load.paths.map((path) => target.requestBytes(path, load.headers));

const latencies: number[] = [];
let failures = 0;
let firstFailure: string | undefined;
let next = 0;
/** Set when all connections are open. */
let end = 0;
const isOnce = load.length === "once" || load.length.isOnce === true;

function takeRequest(now: number): Buffer | undefined {
  if (now >= end) return undefined;
  if (isOnce && next === requests.length) return undefined;
  return requests[next++ % requests.length];
}

/** Opens a connection, on which the next request is sent when the last answer is whole. */
function openConnection() {
  const reader = createAnswerReader();
  let sentAt = 0;
  const socket = connect({
    host: target.host,
    port: target.port,
    noDelay: true,
    onread: { buffer: readBuffer, callback: (length, buffer) => receive(buffer as Buffer, length) },
  });

  function send(now: number): void {
    const request = takeRequest(now);
    if (request === undefined) {
      socket.destroy();
      return;
    }
    sentAt = now;
    socket.write(request);
  }
  function fail(problem: string): void {
    failures++;
    firstFailure ??= problem;
    socket.destroy();
  }
  function receive(buffer: Buffer, length: number): boolean {
    const taken = reader.take(buffer.subarray(0, length));
    if (taken === "more") return true;
    if (taken === "broken") {
      fail("an answer without a length, or more than was asked for");
      return false;
    }
    if (taken !== load.status) {
      failures++;
      firstFailure ??= `expected status ${load.status}, received ${taken}`;
    }
    const now = performance.now();
    latencies.push(now - sentAt);
    send(now);
    return true;
  }

  socket.once("error", (error) => fail(error.message));
  socket.once("end", () => fail("the server closed the connection"));
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const opened = new Promise<void>((resolve) => socket.once("connect", resolve));
  return {
    opened: Promise.race([opened, closed]),
    closed,
    begin(now: number) {
      if (!socket.destroyed) send(now);
    },
  };
}

const connections = Array.from({ length: load.connections }, openConnection);
await Promise.all(connections.map(({ opened }) => opened));
// Not before: on a busy machine, a short measurement would be over before its first request.
const beginCpu = process.cpuUsage();
const begin = performance.now();
end = load.length === "once" ? Number.POSITIVE_INFINITY : begin + load.length.seconds * 1_000;
for (const connection of connections) connection.begin(begin);
await Promise.all(connections.map(({ closed }) => closed));
const seconds = (performance.now() - begin) / 1_000;
const { user, system } = process.cpuUsage(beginCpu);
const sorted = Float64Array.from(latencies).sort();
const result: LoadResult = {
  generator: "node",
  requests: latencies.length,
  seconds,
  p50: percentile(sorted, 50),
  p90: percentile(sorted, 90),
  p99: percentile(sorted, 99),
  failures,
  firstFailure,
  generatorCpuSeconds: (user + system) / 1e6,
};
console.log(JSON.stringify(result));
