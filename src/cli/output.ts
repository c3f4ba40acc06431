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
