import { Command, Option } from "commander";
import type { OptionKey } from "../config/options.js";
import { configError } from "../config/problem.js";
import { addServeArguments } from "../config/serve-command.js";
import { type DimensionRange, parseIndexRange, parseValueRange } from "../warm/dimension-range.js";
import { type InstanceShare, instanceShare } from "../warm/instance-share.js";

/** Request of an operator to `warm`, besides the configuration of a server. */
export interface WarmRequest {
  /** Ids of datasets; empty for all. */
  readonly datasets: readonly string[];
  /** Paths of variables and groups; empty for all. */
  readonly variables: readonly string[];
  readonly ranges: readonly DimensionRange[];
  readonly stored: boolean;
  /** Share of the workers, more than 0 and at most 1. */
  readonly share: number;
  readonly isOwn: InstanceShare | undefined;
}

/** Options of a server that matter here. */
const SHOWN: readonly OptionKey[] = [
  ...(["workers", "cacheDir", "cacheSize", "rootPath", "single", "logLevel", "skipInvalid"] as const),
  ...(["chunkTimeout", "sourceTimeout", "workerMemory", "maxChunkSize"] as const),
];

const DETAILS = `
Give it the arguments and the file of the server: chunks are cached for the same
datasets, encodings, --cache-dir and --cache-size only. All options of serve are
taken. A server may run meanwhile. What is cached already is skipped, so that
the command can be repeated. Coordinates of what is selected are always part of it.

Ranges:
  --isel time=0:100         indices as in Python: without 100; time=-24: the last 24
  --sel time=2013-01:2013-02   dates in the calendar of the data, January and February
  --sel lat=30:50           values with both ends, in either order

Instances behind a balancer by path, as in scripts/deploy:
  --instances 192.0.2.11:9000,192.0.2.12:9000 --instance 192.0.2.11:9000
                            nginx, whose hash depends on the names of its servers
  --instances 3 --instance 1   HAProxy, whose servers have the ids 1 to 3

Examples:
  zpublish warm --config zpublish.json --share 0.5
  zpublish warm data/air.zarr --variable t2m --sel time=2013-01-01:

TERM and INT end it soon; what was made until then stays cached. The exit code is
0 if everything is cached, and 1 if some chunks failed or did not fit.
`;

/** Creates the `warm` command, for help and parsing. It has no action. */
export function createWarmCommand(): Command {
  const command = new Command("warm").description("Encode chunks into the cache before they are asked for");
  const several = (text: string, before: readonly string[] = []) => [...before, text];
  command
    .addOption(new Option("--dataset <id>", "Only this dataset; may be repeated").argParser(several))
    .addOption(
      new Option("--variable <path>", "Only this variable or group; may be repeated").argParser(several),
    )
    .addOption(
      new Option("--isel <dim=range>", "Only these indices of a dimension; may be repeated").argParser(
        several,
      ),
    )
    .addOption(
      new Option("--sel <dim=range>", "Only these values of a dimension; may be repeated").argParser(several),
    )
    .option("--stored", "Cache also chunks that are served as they are stored, for data on other machines")
    .option("--share <share>", "Share of the workers, more than 0 and at most 1 (default: 1)")
    .option(
      "--instances <instances>",
      "Servers of the balancer: nginx's names with commas, or HAProxy's number",
    )
    .option("--instance <instance>", "Only chunks that the balancer sends to this one of them");
  return addServeArguments(command, SHOWN).addHelpText("after", DETAILS);
}

/** Reads what a parsed `warm` command asks for. @throws ZpublishError `invalid-config`, a line for each problem */
export function warmRequestOf(command: Command): WarmRequest {
  const options = command.opts<{
    dataset?: string[];
    variable?: string[];
    isel?: string[];
    sel?: string[];
    stored?: boolean;
    share?: string;
    instances?: string;
    instance?: string;
  }>();
  const problems: string[] = [];
  const rangesOf = (
    flag: string,
    texts: readonly string[] = [],
    parse: (text: string) => DimensionRange | undefined,
    expected: string,
  ) =>
    texts.flatMap((text) => {
      const range = parse(text);
      if (range === undefined) problems.push(`${flag}: expected ${expected}, received "${text}"`);
      return range ?? [];
    });
  const ranges = [
    ...rangesOf("--isel", options.isel, parseIndexRange, "DIM=BEGIN:END such as time=0:100"),
    ...rangesOf("--sel", options.sel, parseValueRange, "DIM=LOW:HIGH of numbers or dates such as lat=30:50"),
  ];
  const share = options.share === undefined ? 1 : Number(options.share);
  if (!(share > 0 && share <= 1))
    problems.push(`--share: expected a number above 0 and up to 1, received "${options.share}"`);
  const { instances, instance } = options;
  let isOwn: InstanceShare | undefined;
  if (instances !== undefined && instance !== undefined) {
    const found = instanceShare(instances, instance);
    if (typeof found === "string") problems.push(found);
    else isOwn = found;
  } else if (instances !== instance) {
    const [given, missing] = instances === undefined ? ["instance", "instances"] : ["instances", "instance"];
    problems.push(`--${given}: expected --${missing} with it, received none`);
  }
  if (problems.length > 0) throw configError(problems);
  const { dataset = [], variable = [], stored = false } = options;
  return { datasets: dataset, variables: variable, ranges, stored, share, isOwn };
}
