import { runProgram } from "./cli/program.js";

// A reader that has seen enough (`zpublish inspect … | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

const exitCode = await runProgram(process.argv.slice(2));
// A failed start may have left threads behind that would keep the process; what succeeded ends by itself, written out.
if (exitCode === 0) process.exitCode = 0;
else if (exitCode !== undefined) process.exit(exitCode);
