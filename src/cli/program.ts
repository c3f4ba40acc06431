import { existsSync } from "node:fs";
import { Command, CommanderError } from "commander";
import type { Config } from "../config/config.js";
import { resolveArguments } from "../config/resolve-config.js";
import {
  addServeArguments,
  argumentsOf,
  commandLineProblem,
  createServeCommand,
  type ServeArguments,
} from "../config/serve-command.js";
import { configError } from "../config/value-schemas.js";
import { packageVersion } from "../observe/versions.js";
import type { InspectOptions } from "./inspect.js";
import { EXIT_CODES, exitCodeOf, reportError } from "./output.js";
import { createReferencesCommand, referencesRequestOf, runReferences } from "./references.js";
import { createSelectCommand, runSelect, selectRequestOf } from "./select.js";
import { runServe } from "./serve.js";
import { createWarmCommand, warmRequestOf } from "./warm.js";

/** What the program says without arguments. */
const INTRODUCTION = `zpublish publishes n-dimensional datasets over HTTP: NetCDF, HDF5, GeoTIFF, Zarr and Icechunk.

  zpublish demo             serves invented data, to look at in a browser
  zpublish air.nc           serves a file, a Zarr store, or all that lie in a folder
  zpublish s3://bucket/x/   the same of a bucket or a web server
  zpublish inspect air.nc   shows what is in it, and how it is served
  zpublish select air.nc --var t2m -o piece.nc   writes a piece of it

zpublish --help lists all commands, zpublish serve --help all options.
`;

/**
 * Parses the command line and runs its command. Resolves to the exit code, or to undefined if a server runs now.
 *
 * A command's modules are loaded when it runs, so that help, version and error messages are quick and work on any system.
 * @param argv Arguments without node and script.
 */
export async function runProgram(argv: readonly string[]): Promise<number | undefined> {
  let exitCode: number | undefined = EXIT_CODES.done;
  if (argv.length === 0) {
    process.stderr.write(INTRODUCTION);
    return EXIT_CODES.invalidCommandLine;
  }
  const program = createProgram((code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(isServed(argv[0]) ? ["serve", ...argv] : argv, { from: "user" });
    return exitCode;
  } catch (error) {
    if (!(error instanceof CommanderError)) {
      reportError(error);
      return exitCodeOf(error);
    }
    if (error.exitCode === 0) return EXIT_CODES.done;
    reportError(commandLineProblem(error));
    return EXIT_CODES.invalidCommandLine;
  }
}

/** Tells whether the first argument is a location or an option of `serve`, and no command: `zpublish x.nc`. */
function isServed(first = ""): boolean {
  if (first.startsWith("-")) return !["-h", "--help", "-V", "--version"].includes(first);
  return /[^a-z]/.test(first) || (first !== "" && !COMMANDS.has(first) && existsSync(first));
}

const COMMANDS: ReadonlySet<string> = new Set(["serve", "demo", "warm", "inspect", "select", "references"]);

/** @param onEnd Takes the exit code of a command, if it is not 0; undefined if a server runs now. */
function createProgram(onEnd: (exitCode: number | undefined) => void): Command {
  const program = new Command("zpublish")
    .description(
      "Publish n-dimensional datasets over HTTP. `zpublish LOCATION` is short for `zpublish serve LOCATION`",
    )
    .version(packageVersion, "-V, --version", "Show the version")
    .helpOption("-h, --help", "Show this help, or that of a command")
    .helpCommand(false);
  const serve = createServeCommand()
    .helpOption("-h, --help", "Show this help")
    .action(async () => {
      const said = argumentsOf(serve);
      const cwd = process.cwd();
      await runServe(() => configOf(said, cwd, "serve"));
      onEnd(undefined);
    });
  const demo = addServeArguments(new Command("demo"), ["host", "port"])
    .description("Make two invented datasets in the user's cache, and publish them with the options of serve")
    .helpOption("-h, --help", "Show this help")
    .action(async () => {
      const said = argumentsOf(demo);
      const cwd = process.cwd();
      const { runDemo } = await import("../../scripts/demo/run-demo.js");
      await runDemo((made) => configOf({ ...said, locations: [...made, ...said.locations] }, cwd, "serve"));
      onEnd(undefined);
    });
  const warm = createWarmCommand()
    .helpOption("-h, --help", "Show this help")
    .action(async () => {
      const request = warmRequestOf(warm);
      const config = configOf(argumentsOf(warm), process.cwd(), "warm");
      const { runWarm } = await import("./warm.js");
      onEnd(await runWarm(config, request));
    });
  const inspect = new Command("inspect")
    .description("Show the content of a location, and how it would be served")
    .argument("<location>", "a store or file, a pattern, or a folder of datasets")
    .option("--json", "as JSON")
    .option("--concat <dimension>", "the files of a pattern or folder as one dataset, along a dimension")
    .option("--stack <dimension>", "the same along a new dimension, with one step per file")
    .helpOption("-h, --help", "Show this help")
    .action(async (location: string, options: Partial<InspectOptions>) => {
      const { runInspect } = await import("./inspect.js");
      await runInspect(location, { json: false, ...options });
    });
  const select = createSelectCommand()
    .helpOption("-h, --help", "Show this help")
    .action(async () => onEnd(await runSelect(selectRequestOf(select))));
  const references = createReferencesCommand()
    .helpOption("-h, --help", "Show this help")
    .action(async () => onEnd(await runReferences(referencesRequestOf(references))));
  const commands = [serve, demo, warm, inspect, select, references];
  for (const command of commands) program.addCommand(command);
  // Commander would write two lines that begin with "error:"; runProgram writes one.
  for (const command of [program, ...commands]) {
    command.exitOverride().configureOutput({ outputError: () => {} });
  }
  return program;
}

/** Resolves the configuration of a command that needs datasets. */
function configOf(said: ServeArguments, cwd: string, command: string): Config {
  const config = resolveArguments(said, { env: process.env, cwd });
  const { datasets, collections, plugins } = config;
  // A plugin of the operator's may have datasets of its own.
  if (datasets.length + collections.length > 0 || plugins.some(({ module }) => module !== undefined))
    return config;
  throw configError([
    `nothing to ${command}: expected [ID=]LOCATION, or datasets or collections in the file of --config`,
  ]);
}
