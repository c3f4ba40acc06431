import { messageOf, ZpublishError } from "../errors.js";
import type { CodecSpec } from "../zarr/codec-step.js";

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

/** Writes a shape: `(1464, 25, 53)`, or `()` for a scalar. */
export function formatShape(shape: readonly number[]): string {
  return `(${shape.join(", ")})`;
}

/** Writes a codec with its inner codec: `blosc(lz4)`, `zstd`. */
export function formatCodec({ id, cname }: CodecSpec): string {
  return typeof cname === "string" ? `${id}(${cname})` : id;
}

/** Writes a number and its noun: `1 file`, `2 files`. */
export function countOf(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

/** Escapes characters in a name from a store that could move a terminal's cursor. */
export function printable(text: string): string {
  return text.replace(
    /\p{Cc}/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}
