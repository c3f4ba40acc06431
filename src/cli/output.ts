import { createWriteStream, rmSync } from "node:fs";
import { rename, stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { messageOf, ZpublishError } from "../errors.js";

/** Exit codes of the program. */
export const EXIT_CODES = { done: 0, failed: 1, invalidCommandLine: 2 } as const;

/** Chooses the exit code of an error: 2 if the configuration is wrong, else 1. */
export function exitCodeOf(error: unknown): number {
  return error instanceof ZpublishError && error.code === "invalid-config"
    ? EXIT_CODES.invalidCommandLine
    : EXIT_CODES.failed;
}

/** Writes `zpublish: …` to standard error, a line for each line of the message. */
export function reportError(error: unknown): void {
  const message = typeof error === "string" ? error : messageOf(error);
  const lines = message.split("\n").filter((line) => line !== "");
  process.stderr.write(lines.map((line) => `zpublish: ${line}\n`).join(""));
}

/**
 * Writes pieces, and returns the number of their bytes. A file is written beside its name and renamed when it is whole; what is no file, such as
 * `/dev/null` or a pipe, is written as it is.
 * @param output Default: standard output.
 */
export async function writePieces(
  pieces: AsyncIterable<Uint8Array>,
  output: string | undefined,
  signal: AbortSignal,
): Promise<number> {
  let byteLength = 0;
  async function* counted(): AsyncGenerator<Uint8Array> {
    for await (const piece of pieces) {
      byteLength += piece.length;
      // Its memory may be used again before it is written.
      yield Uint8Array.from(piece);
    }
  }
  if (output === undefined) {
    await pipeline(counted(), process.stdout, { end: false, signal }).catch((error) => {
      // A reader that has seen enough is no failure.
      if (error.code !== "EPIPE") throw error;
    });
    return byteLength;
  }
  const found = await stat(output).catch(() => undefined);
  const path = found === undefined || found.isFile() ? `${output}.${process.pid}.part` : output;
  const discard = () => {
    if (path !== output) rmSync(path, { force: true });
  };
  // A second signal ends the process at once.
  process.once("exit", discard);
  try {
    await pipeline(counted(), createWriteStream(path), { signal });
    if (path !== output) await rename(path, output);
  } catch (error) {
    discard();
    throw error;
  } finally {
    process.off("exit", discard);
  }
  return byteLength;
}
