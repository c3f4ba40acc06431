import { messageOf, ZpublishError } from "../errors.js";

/** How the program ends. */
export const EXIT_CODES = { done: 0, failed: 1, invalidCommandLine: 2 } as const;

/** 2 where the operator's words are wrong, 1 for everything else. */
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
