import { Command, CommanderError, Option } from "commander";
import {
  defaultTextOf,
  flagOf,
  OPTION_GROUPS,
  OPTION_KEYS,
  type OptionKey,
  OTHER_OPTIONS,
  optionSpec,
} from "./options.js";
import { configError } from "./value-schemas.js";

/** Arguments of `serve` as text, unchecked. */
export interface ServeArguments {
  /** `[ID=]LOCATION`, in order. */
  readonly locations: readonly string[];
  readonly config: string | undefined;
  /** Dimension along which the files of each location are joined. */
  readonly concat: string | undefined;
  /** New dimension along which the files of each location are stacked. */
  readonly stack: string | undefined;
  /** In order: the last choice for a plugin wins. */
  readonly plugins: readonly { readonly text: string; readonly enabled: boolean }[];
  /** Switches as booleans, the rest as text. */
  readonly values: Readonly<Partial<Record<OptionKey, string | boolean>>>;
}

const DETAILS = `
Every option may also stand in the file (cacheDir) or in the environment
(ZPUBLISH_CACHE_DIR); a flag wins over a variable, a variable over the file.

Examples:
  zpublish serve data/air.zarr                     as dataset "air"
  zpublish serve now=/data/2024.zarr --port 8080   as dataset "now"
  zpublish serve /data                             all files and stores below it
  zpublish serve '/data/**/*.nc'                   those that match, each a dataset
  zpublish serve 'sst=/data/sst-*.nc' --concat time   all of them as dataset "sst"
  zpublish serve --config zpublish.json --no-plugin module_version

Signals: after TERM or INT the server answers as before for --drain-delay, but is
not ready. Then it finishes requests in flight within --drain-timeout. A second
signal ends it at once. HUP reads options and file again, and refreshes datasets.
`;

/** Creates the `serve` command with all its options, for help and parsing. It has no action. */
export function createServeCommand(): Command {
  const command = new Command("serve").description("Publish datasets over HTTP");
  return addServeArguments(command).addHelpText("after", DETAILS);
}

/**
 * Adds the arguments of `serve` to a command that takes the same configuration.
 * @param shown Options in the help. The others are taken, too, so that the arguments of a server can be used as they are.
 */
export function addServeArguments(command: Command, shown: readonly OptionKey[] = OPTION_KEYS): Command {
  command.argument(
    "[locations...]",
    "[ID=]LOCATION of each dataset, or of a folder of them; the id is its file name if none is given",
  );
  for (const [heading, keys] of Object.entries(OPTION_GROUPS)) {
    const options = keys.flatMap((key) =>
      isSingle(key) ? optionsOf(key, shown.includes(key)) : optionOf(key),
    );
    for (const option of options) command.addOption(option.helpGroup(heading));
  }
  return command;
}

function isSingle(key: OptionKey | keyof typeof OTHER_OPTIONS): key is OptionKey {
  return OPTION_KEYS.includes(key as OptionKey);
}

function optionOf(key: keyof typeof OTHER_OPTIONS): Option {
  const { flag, summary } = OTHER_OPTIONS[key];
  const option = new Option(flag, summary);
  if (key !== "plugin" && key !== "noPlugin") return option;
  const enabled = key === "plugin";
  return option.argParser((text: string, before: ServeArguments["plugins"] | undefined) => [
    ...(before ?? []),
    { text, enabled },
  ]);
}

/** Makes the flags of an option: two for a switch, of which the help shows the one that changes the default. */
function optionsOf(key: OptionKey, isShown: boolean): Option[] {
  const { placeholder, summary } = optionSpec(key);
  const flag = flagOf(key);
  const defaultText = defaultTextOf(key);
  if (placeholder !== null) {
    const said = defaultText === "" ? "" : ` (default: ${defaultText})`;
    return [new Option(`${flag} <${placeholder}>`, summary + said).hideHelp(!isShown)];
  }
  // A flag for each state, so that it can override a file or variable.
  const isOn = defaultText === "true";
  const off = new Option(
    `--no-${flag.slice(2)}`,
    `Do not ${summary.charAt(0).toLowerCase()}${summary.slice(1)}`,
  );
  return [new Option(flag, summary).hideHelp(isOn || !isShown), off.hideHelp(!isOn || !isShown)];
}

/** Reads the arguments of `serve` of a parsed command. */
export function argumentsOf(command: Command): ServeArguments {
  const { config, concat, stack, plugin, ...options } = command.opts<Record<string, unknown>>();
  // Commander presets `true` for some switches; only values from the command line count.
  const said = Object.entries(options).filter(
    ([key]) => OPTION_KEYS.includes(key as OptionKey) && command.getOptionValueSource(key) === "cli",
  );
  return {
    locations: command.args,
    config: config as string | undefined,
    concat: concat as string | undefined,
    stack: stack as string | undefined,
    plugins: (plugin as ServeArguments["plugins"] | undefined) ?? [],
    values: Object.fromEntries(said) as ServeArguments["values"],
  };
}

/**
 * Parses the arguments after `serve`.
 * @throws ZpublishError `invalid-config`
 */
export function parseServeArguments(argv: readonly string[]): ServeArguments {
  const command = createServeCommand().helpOption(false);
  command.exitOverride().configureOutput({ writeErr: () => {} });
  try {
    command.parse(argv, { from: "user" });
  } catch (error) {
    throw error instanceof CommanderError ? configError([commandLineProblem(error)]) : error;
  }
  return argumentsOf(command);
}

/** Writes commander's message in one line. */
export function commandLineProblem(error: CommanderError): string {
  return error.message.replace(/^error: /, "").replace(/\s*\n\s*/g, " ");
}
