import { pathToFileURL } from "node:url";
import { killChildren } from "./children.js";

/** What `kill` and Ctrl-C give as exit codes. */
export const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Runs a module's main function where the module is the program, and not imported by a test. Nothing that was started is left
 * behind, however it ends.
 * @param moduleUrl `import.meta.url`.
 */
export async function runProgram(moduleUrl: string, main: () => Promise<void>): Promise<void> {
  const [, program] = process.argv;
  if (program === undefined || moduleUrl !== pathToFileURL(program).href) return;
  for (const [signal, code] of Object.entries(EXIT_CODES)) {
    process.once(signal, () => {
      killChildren();
      process.exit(code);
    });
  }
  try {
    await main();
  } finally {
    killChildren();
  }
}
