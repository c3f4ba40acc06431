/**
 * A process of its own: `node probe.js FILE` asks for a few paths in turn over one connection, as a `ProbeRequest` (JSON)
 * says, until it is sent SIGTERM or its time is over, and prints its `ProbeResult`. Prints `probing` after the first answer.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { percentile } from "../statistics.js";
import { createAnswerReader, targetOf } from "./raw-http.js";
import type { ProbeLatency, ProbeRequest, ProbeResult } from "./run-probe.js";

const WARM_UP_ANSWERS = 200;

const probe = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as ProbeRequest;
const target = targetOf(probe.baseUrl);
const requests = probe.paths.map((path) => target.requestBytes(path));
const latencies: number[][] = probe.paths.map(() => []);
const reader = createAnswerReader();
const readBuffer = Buffer.allocUnsafeSlow(256 * 1024);

let asked = 0;
/** When the request under way was due: what it waited for the answer before it is latency, too. */
let dueAt = 0;
let begin = performance.now();

const socket = connect({
  host: target.host,
  port: target.port,
  noDelay: true,
  onread: {
    buffer: readBuffer,
    callback(length, buffer) {
      const taken = reader.take((buffer as Buffer).subarray(0, length));
      if (taken === "more") return true;
      if (taken !== 200) fail(`received ${taken === "broken" ? "an answer without a length" : taken}`);
      answered(performance.now());
      return true;
    },
  },
});
socket.once("connect", () => {
  dueAt = performance.now();
  socket.write(requests[0]!);
});
socket.once("error", (error) => fail(error.message));
socket.once("end", () => fail("the server closed the connection"));
process.once("SIGTERM", finish);

function answered(now: number): void {
  if (asked >= WARM_UP_ANSWERS) latencies[asked % requests.length]!.push(now - dueAt);
  asked++;
  if (asked === WARM_UP_ANSWERS) {
    console.log("probing");
    begin = now;
    if (probe.seconds !== undefined) setTimeout(finish, probe.seconds * 1_000);
  }
  const wait = dueAt + probe.pauseMs - now;
  if (wait <= 0) send(Math.max(dueAt + probe.pauseMs, begin));
  // A timer of ours that is late is none of the server's latency.
  else setTimeout(() => send(performance.now()), wait);
}

function send(due: number): void {
  dueAt = due;
  socket.write(requests[asked % requests.length]!);
}

function latencyOf(values: readonly number[]): ProbeLatency {
  const sorted = Float64Array.from(values).sort();
  return {
    requests: sorted.length,
    p50: percentile(sorted, 50),
    p99: percentile(sorted, 99),
    max: percentile(sorted, 100),
  };
}

function finish(): void {
  const byPath = new Map<string, number[]>();
  for (const [i, path] of probe.paths.entries()) {
    byPath.set(path, [...(byPath.get(path) ?? []), ...latencies[i]!]);
  }
  const result: ProbeResult = {
    seconds: (performance.now() - begin) / 1_000,
    all: latencyOf(latencies.flat()),
    paths: Object.fromEntries([...byPath].map(([path, values]) => [path, latencyOf(values)])),
  };
  process.stdout.write(`result ${JSON.stringify(result)}\n`, () => process.exit(0));
}

function fail(problem: string): never {
  console.error(`${probe.paths[asked % requests.length]}: ${problem}`);
  process.exit(1);
}
