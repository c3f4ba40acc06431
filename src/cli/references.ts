import { rmSync } from "node:fs";
import { mkdir, rename, stat } from "node:fs/promises";
import { Command } from "commander";
import { configError } from "../config/value-schemas.js";
import { createLog } from "../observe/log.js";
import { findUnreferable, referencePieces } from "../references/dataset-references.js";
import { writeParquetReferences } from "../references/parquet-references.js";
import type { BytePlace } from "../zarr/chunk-reader.js";
import { EXIT_CODES, reportError, writePieces } from "./output.js";
import { configOfOne } from "./select.js";
import { withApp } from "./with-app.js";

/** Request of a person to `references`. */
interface ReferencesRequest {
  readonly location: string;
  readonly concat?: string | undefined;
  readonly stack?: string | undefined;
  /** File or folder to write; undefined for standard output. */
  readonly output?: string | undefined;
}

const DETAILS = `
The references say where each chunk is stored: absolute paths of local files, URLs of others, without credentials.
Chunks that are compressed once more, cut differently or put together are written into the references, up to 4 MiB
of an array; arrays with more of them are left out, with a line on standard error.

Examples:
  zpublish references air.nc -o air.json
  zpublish references '/data/sst-*.nc' --concat time -o sst.parq
  python3 -c 'import xarray; print(xarray.open_dataset("reference://", engine="zarr",
    backend_kwargs={"consolidated": False, "storage_options": {"fo": "air.json"}}))'
`;

/** Creates the `references` command, for help and parsing. It has no action. */
export function createReferencesCommand(): Command {
  return new Command("references")
    .description("Write where the chunks of a dataset are stored, as kerchunk's references")
    .argument("<location>", "a store or file, or files to join")
    .option(
      "-o, --output <file>",
      "JSON file, or a new folder for a name that ends with .parq or .parquet (default: standard output)",
    )
    .option("--concat <dimension>", "the files of the location as one dataset, along a dimension")
    .option("--stack <dimension>", "the same along a new dimension, with one step per file")
    .addHelpText("after", DETAILS);
}

/** Reads what a parsed `references` command asks for. */
export function referencesRequestOf(command: Command): ReferencesRequest {
  return { ...command.opts<Omit<ReferencesRequest, "location">>(), location: command.args[0] as string };
}

/**
 * Runs `references`: opens the dataset as a server does, without a listener, and writes its references.
 * @returns The exit code.
 * @throws ZpublishError if the dataset cannot be opened or read; Error if the file cannot be written.
 */
export async function runReferences(request: ReferencesRequest): Promise<number> {
  const { output } = request;
  const isFolder = /\.parq(?:uet)?$/.test(output ?? "");
  if (isFolder && (await stat(output as string).catch(() => undefined)) !== undefined)
    throw configError([`--output: expected the name of a new folder, received "${output}", which exists`]);
  const config = await configOfOne(request, "references");
  const options = { log: createLog("error"), progressLog: { info: () => {} } };
  return withApp(config, options, async ({ datasets }, runtime, { signal, exitCode }) => {
    try {
      const snapshot = await datasets.open(datasets.ids()[0] as string);
      const leftOut = await findUnreferable(snapshot, signal);
      const rules = {
        chunks: runtime.chunks(),
        urlOf: ({ location }: BytePlace) => location,
        leftOut,
        signal,
      };
      if (isFolder)
        await writeFolder(output as string, (folder) => writeParquetReferences(folder, snapshot, rules));
      else await writePieces(referencePieces(snapshot, rules), output, signal);
      for (const [path, reason] of leftOut) reportError(`left out '${path}': ${reason}`);
      return EXIT_CODES.done;
    } catch (error) {
      if (!signal.aborted) throw error;
      reportError("ended by a signal, nothing is left of the references");
      return exitCode();
    }
  });
}

/** Has a folder written beside its name, and renames it when it is whole. */
async function writeFolder(output: string, write: (folder: string) => Promise<void>): Promise<void> {
  const folder = `${output}.${process.pid}.part`;
  const discard = () => rmSync(folder, { recursive: true, force: true });
  // A second signal ends the process at once.
  process.once("exit", discard);
  try {
    await mkdir(folder);
    await write(folder);
    await rename(folder, output);
  } finally {
    discard();
    process.off("exit", discard);
  }
}
