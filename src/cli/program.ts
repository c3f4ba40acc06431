import { Command, CommanderError } from "commander";
import { configError } from "../config/problem.js";
import { resolveArguments } from "../config/resolve-config.js";
import { argumentsOf, commandLineProblem, createServeCommand } from "../config/serve-command.js";
import { packageVersion } from "../observe/package-version.js";
import { EXIT_CODES, exitCodeOf, reportError } from "./report-error.js";
import { runServe } from "./serve.js";

/**
 * Parses the command line and runs its command. Resolves to the exit code, or to undefined if a server runs now.
 *
 * A command's modules are loaded when it runs, so that help, version and error messages are quick and work on any system.
 * @param argv Arguments without node and script.
 */
export async function runProgram(argv: readonly string[]): Promise<number | undefined> {
  let isServing = false;
  const program = createProgram(() => {
    isServing = true;
  });
  try {
    await program.parseAsync(argv, { from: "user" });
    return isServing ? undefined : EXIT_CODES.done;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      reportError(error);
      return exitCodeOf(error);
    }
    if (error.exitCode === 0) return EXIT_CODES.done;
    // Without a command, commander has shown the help already.
    if (error.code !== "commander.help") reportError(commandLineProblem(error));
    return EXIT_CODES.invalidCommandLine;
  }
}

function createProgram(onServing: () => void): Command {
  const program = new Command("zpublish")
    .description("Publish n-dimensional datasets over HTTP")
    .version(packageVersion, "-V, --version", "Show the version")
    .helpOption("-h, --help", "Show this help, or that of a command")
    .helpCommand(false);
  const serve = createServeCommand()
    .helpOption("-h, --help", "Show this help")
    .action(async () => {
      const said = argumentsOf(serve);
      const cwd = process.cwd();
      await runServe(() => {
        const config = resolveArguments(said, { env: process.env, cwd });
        if (config.datasets.length === 0) {
          throw configError([
            "nothing to serve: expected [ID=]LOCATION, or datasets in the file of --config",
          ]);
        }
        return config;
      });
      onServing();
    });
  const inspect = new Command("inspect")
    .description("Show the content of a location, and how it would be served")
    .argument("<location>", "a Zarr store")
    .option("--json", "as JSON")
    .helpOption("-h, --help", "Show this help")
    .action(async (location: string, { json = false }: { json?: boolean }) => {
      const { runInspect } = await import("./run-inspect.js");
      await runInspect(location, { json });
    });
  for (const command of [serve, inspect]) program.addCommand(command);
  // Commander would write two lines that begin with "error:"; runProgram writes one.
  for (const command of [program, serve, inspect]) {
    command.exitOverride().configureOutput({ outputError: () => {} });
  }
  return program;
}
