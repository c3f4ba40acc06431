import { extname } from "node:path";
import { Command } from "commander";
import type { Config } from "../config/config.js";
import { configError, formatByteSize } from "../config/value-schemas.js";
import { ZpublishError } from "../errors.js";
import type { RouteRequest, StreamReply } from "../http/reply.js";
import { createLog } from "../observe/log.js";
import { type App, separateFolders } from "../server/open-app.js";
import { configOfLocation } from "./inspect.js";
import { EXIT_CODES, reportError, writePieces } from "./output.js";
import { durationText } from "./progress.js";
import { withApp } from "./with-app.js";

/** Request of a person to `select`. */
interface SelectRequest {
  readonly location: string;
  readonly concat?: string | undefined;
  readonly stack?: string | undefined;
  /** As the plugin `select` takes it, without a question mark. */
  readonly query: string;
  /** File to write; undefined for standard output. */
  readonly output: string | undefined;
}

/** The route of the plugin `select`. */
const ROUTE = "/datasets/{dataset_id}/select";
const FORMATS = ["nc", "csv", "json", "npy", "arrow"];

const DETAILS = `
The answer is that of a server at /datasets/{id}/select, of any size.

Labels:
  --sel lat=50                     that label; lat=nearest::41, ffill::41, bfill::41
  --sel lat=40/60                  a range with both ends; time=2020-01-01/.. is open
  --sel time=2020-01               the whole month
  --step lat=2                     every second step of a range
  --isel time=0:10 --isel lat=-1   by index, as slices of Python

Examples:
  zpublish select air.nc --var air --sel time=2013-07 --sel lat=40/60 -o july.nc
  zpublish select air.nc --var air --sel lat=nearest::50 --sel lon=nearest::260 -f csv
  zpublish select '/data/sst-*.nc' --concat time --var sst --isel time=-1 -o last.nc

A file appears under its name when it is whole; what was there before is replaced.
The exit code is 2 if nothing can be selected like that, and 1 if reading failed.
`;

/** Creates the `select` command, for help and parsing. It has no action. */
export function createSelectCommand(): Command {
  const several = (text: string, before: readonly string[] = []) => [...before, text];
  return new Command("select")
    .description("Write a piece of a dataset as NetCDF, CSV, JSON, npy or Arrow")
    .argument("<location>", "a store or file, or files to join")
    .option("--var <path>", "Only this variable or group; may be repeated", several)
    .option("--sel <dim=label>", "Only these labels of a dimension; may be repeated", several)
    .option("--isel <dim=index>", "Only these indexes of a dimension; may be repeated", several)
    .option("--step <dim=n>", "Every n-th step of a range of labels; may be repeated", several)
    .option("-f, --format <format>", `${FORMATS.join(", ")} (default: by the name of the file, else json)`)
    .option("-o, --output <file>", "File to write (default: standard output)")
    .option("--decode", "Unpack values, with NaN for missing ones (default: unless nc or npy)")
    .option("--no-decode", "Write values as they are stored (default: nc and npy)")
    .option("--concat <dimension>", "the files of the location as one dataset, along a dimension")
    .option("--stack <dimension>", "the same along a new dimension, with one step per file")
    .addHelpText("after", DETAILS);
}

/** Reads what a parsed `select` command asks for. @throws ZpublishError `invalid-config`, a line for each problem */
export function selectRequestOf(command: Command): SelectRequest {
  const { output, concat, stack, ...options } = command.opts<{
    var?: string[];
    sel?: string[];
    isel?: string[];
    step?: string[];
    format?: string;
    output?: string;
    decode?: boolean;
    concat?: string;
    stack?: string;
  }>();
  const problems: string[] = [];
  const pairsOf = (flag: string, prefix: string, texts: readonly string[] = []) =>
    texts.map((text): [string, string] => {
      const at = text.indexOf("=");
      if (at < 1) problems.push(`--${flag}: expected DIM=… such as lat=3, received "${text}"`);
      return [prefix + text.slice(0, at), text.slice(at + 1)];
    });
  const ending = output === undefined ? "json" : extname(output).slice(1);
  const format = options.format ?? ending;
  if (!FORMATS.includes(format)) {
    const expected = `one of ${FORMATS.join(", ")}`;
    problems.push(
      options.format === undefined
        ? `--output: expected a name that ends with ${expected}, or --format, received "${output}"`
        : `--format: expected ${expected}, received "${format}"`,
    );
  }
  const pairs: [string, string][] = [
    ...(options.var ?? []).map((path): [string, string] => ["var", path]),
    ...pairsOf("sel", "", options.sel),
    ...pairsOf("isel", "isel.", options.isel),
    ...pairsOf("step", "step.", options.step),
    ["f", format],
  ];
  if (options.decode !== undefined) pairs.push(["decode", options.decode ? "1" : "0"]);
  if (problems.length > 0) throw configError(problems);
  const query = String(new URLSearchParams(pairs));
  return { location: command.args[0] as string, concat, stack, query, output };
}

/**
 * Runs `select`: opens the dataset as a server does, without a listener, and writes what its plugin answers.
 * @returns The exit code.
 * @throws ZpublishError if the dataset cannot be opened, or does not have what is asked for; Error if the file cannot be written.
 */
export async function runSelect(request: SelectRequest): Promise<number> {
  const config = await configOfOne(request, "select");
  const options = { log: createLog("error"), progressLog: { info: () => {} } };
  return withApp(config, options, async (app, _runtime, { signal, exitCode }) => {
    const began = performance.now();
    try {
      const reply = await answer(app, request.query, signal);
      const client = { signal, reserve: () => undefined, started: false };
      const byteLength = await writePieces(reply.pieces(undefined, client), request.output, signal);
      if (request.output !== undefined && process.stderr.isTTY) {
        const time = durationText((performance.now() - began) / 1_000);
        process.stderr.write(`${request.output}: ${formatByteSize(byteLength)} in ${time}\n`);
      }
      return EXIT_CODES.done;
    } catch (error) {
      if (!signal.aborted) throw error;
      reportError("ended by a signal, nothing is left of the file");
      return exitCode();
    }
  });
}

/** Resolves a location to one dataset, with no plugin but one and without a bound of what is selected. */
export async function configOfOne(
  { location, concat, stack }: Pick<SelectRequest, "location" | "concat" | "stack">,
  plugin: string,
): Promise<Config> {
  const resolved = configOfLocation(location, { concat, stack } as Parameters<typeof configOfLocation>[1]);
  const { collections } = await separateFolders(resolved);
  if (collections.length > 0)
    throw configError([
      `${location}: expected one dataset, received several: name one of them, or join files by --concat or --stack`,
    ]);
  return {
    ...resolved,
    cache: null,
    plugins: resolved.plugins.filter(({ name }) => name === plugin),
    limits: { ...resolved.limits, maxSelectionBytes: Number.MAX_SAFE_INTEGER },
  };
}

/** Asks the plugin as the HTTP layer does. @throws ZpublishError `invalid-config` if the selection is not as it expects */
async function answer({ http, datasets }: App, query: string, signal: AbortSignal): Promise<StreamReply> {
  const route = http.routes.find(({ path }) => path === ROUTE);
  const [id] = datasets.ids();
  if (route === undefined || id === undefined) throw new Error("expected a dataset and the plugin 'select'");
  const request: RouteRequest = {
    ...{ method: "GET", params: { dataset_id: id }, rawPath: "", query, serviceUrl: "", signal },
    body: async () => new Uint8Array(),
    reserve: () => undefined,
    header: () => undefined,
  };
  try {
    return (await route.handler(request)) as StreamReply;
  } catch (error) {
    if (!(error instanceof ZpublishError) || error.code !== "invalid-query") throw error;
    throw configError([`${optionOf(String(error.details?.parameter))}: ${error.message}`]);
  }
}

/** Names the option that became a parameter of a query. */
function optionOf(parameter: string): string {
  const fixed: Readonly<Record<string, string>> = { var: "--var", f: "--format", decode: "--decode" };
  const [, prefix = "sel", dim = parameter] = /^(isel|step)\.(.*)$/s.exec(parameter) ?? [];
  return fixed[parameter] ?? `--${prefix} ${dim}`;
}
