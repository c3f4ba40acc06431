import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild, waitForLine } from "../children.js";

const SLOW_READERS = fileURLToPath(new URL("slow-readers.js", import.meta.url));

/** Clients that take what they asked for slowly, as over a poor line. */
export interface SlowReadersRequest {
  readonly baseUrl: string;
  /** Asked for in turn, by all clients together. */
  readonly paths: readonly string[];
  readonly clients: number;
  /** Of each. */
  readonly bytesPerSecond: number;
  readonly scratch: string;
}

export interface SlowReadersResult {
  readonly seconds: number;
  readonly bytes: number;
  /** Taken to the end. */
  readonly answers: number;
  readonly failures: number;
  /** What the first of them was; undefined where there is none. */
  readonly firstFailure?: string | undefined;
}

/** Starts them, each with a first answer on its way. @throws Error where one has none. */
export async function startSlowReaders(
  request: SlowReadersRequest,
): Promise<{ stop(): Promise<SlowReadersResult> }> {
  const file = join(request.scratch, "slow-readers.json");
  writeFileSync(file, JSON.stringify(request));
  const child = await startChild(process.execPath, [SLOW_READERS, file]);
  let output = "";
  child.process.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  await waitForLine(child, /^reading$/m);
  return {
    async stop() {
      child.process.kill("SIGTERM");
      const status = await child.ended;
      const line = /^result (.*)$/m.exec(output)?.[1];
      if (line === undefined)
        throw new Error(`the slow clients ended with ${status}: ${child.errorText().trim()}`);
      return JSON.parse(line) as SlowReadersResult;
    },
  };
}
