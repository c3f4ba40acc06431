/**
 * A process of its own: `node slow-readers.js FILE` is a number of clients that take their answers slowly, one after the
 * other, as a `SlowReadersRequest` (JSON) says, until SIGTERM; then it prints its `SlowReadersResult`. Prints `reading` once
 * every client has had a part of its first answer.
 */
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { createAnswerReader } from "./answer-reader.js";
import type { SlowReadersRequest, SlowReadersResult } from "./run-slow-readers.js";
import { targetOf } from "./target.js";

const READS_PER_SECOND = 10;

const asked = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as SlowReadersRequest;
const target = targetOf(asked.baseUrl);
const requests = asked.paths.map((path) => target.requestBytes(path));
const readBytes = Math.round(asked.bytesPerSecond / READS_PER_SECOND);

let next = 0;
let begun = 0;
let bytes = 0;
let answers = 0;
let failures = 0;
let firstFailure: string | undefined;
const begin = performance.now();

for (let i = 0; i < asked.clients; i++) startClient(true);
process.once("SIGTERM", finish);
// No client is left.
process.once("beforeExit", finish);

function finish(): void {
  const seconds = (performance.now() - begin) / 1_000;
  const result: SlowReadersResult = { seconds, bytes, answers, failures, firstFailure };
  process.stdout.write(`result ${JSON.stringify(result)}\n`, () => process.exit(0));
}

function fail(problem: string): void {
  failures++;
  firstFailure ??= `${problem} after ${((performance.now() - begin) / 1_000).toFixed(1)} s`;
}

/** @param isNew Whether it has had nothing yet, not on another connection either. */
function startClient(isNew: boolean): void {
  const reader = createAnswerReader();
  let isBegun = !isNew;
  let isBetweenAnswers = false;
  let dueAt = 0;
  const socket = connect({
    host: target.host,
    port: target.port,
    noDelay: true,
    onread: {
      // A buffer this small is what makes a read small.
      buffer: Buffer.allocUnsafeSlow(readBytes),
      callback(length, buffer) {
        bytes += length;
        if (!isBegun) {
          isBegun = true;
          begun++;
          if (begun === asked.clients) console.log("reading");
        }
        isBetweenAnswers = false;
        const taken = reader.take((buffer as Buffer).subarray(0, length));
        if (taken === "broken" || (taken !== "more" && taken !== 200)) {
          fail(taken === "broken" ? "an answer without a length" : `received status ${taken}`);
          socket.destroy();
          return false;
        }
        if (taken === 200) {
          answers++;
          isBetweenAnswers = true;
          socket.write(requests[next++ % requests.length]!);
        }
        const now = performance.now();
        dueAt = Math.max(dueAt, now) + (length / asked.bytesPerSecond) * 1_000;
        setTimeout(() => socket.resume(), dueAt - now);
        return false;
      },
    },
  });
  socket.once("connect", () => socket.write(requests[next++ % requests.length]!));
  socket.once("error", (error) => lost(error.message));
  socket.once("end", () => lost("the server closed the connection"));
  /** A server that has given all of an answer to the system may take the connection for an idle one before it is read. */
  function lost(problem: string): void {
    socket.destroy();
    if (isBetweenAnswers) startClient(false);
    else fail(problem);
    isBetweenAnswers = false;
  }
}
