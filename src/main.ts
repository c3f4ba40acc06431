import { EXIT_CODES, reportError } from "./cli/output.js";
import { runProgram } from "./cli/program.js";

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`zpublish inspect … | head`) is no failure.
  if (error.code === "EPIPE") return;
  reportError(`standard output: ${error.message}`);
  process.exit(EXIT_CODES.failed);
});

const exitCode = await runProgram(process.argv.slice(2));
// A failed start may have left threads behind that would keep the process; what succeeded ends by itself, written out.
if (exitCode === 0) process.exitCode = 0;
else if (exitCode !== undefined) process.exit(exitCode);
