import { Writable } from "node:stream";
import { pino } from "pino";

/** Creates a log with its lines. */
export function createTestLog() {
  const lines: string[] = [];
  const stream = new Writable({
    write(line: Buffer, _, done) {
      lines.push(JSON.parse(line.toString()).msg);
      done();
    },
  });
  return { log: pino({ level: "info" }, stream), lines };
}
