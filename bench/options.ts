import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Rows, tables and programs asked for by name; none for the default ones. */
  readonly names: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly isSmall: boolean;
  readonly peers: readonly string[];
  /** Whether bare uWebSockets.js is measured with the headers of zpublish, too. */
  readonly hasSameHeaders: boolean;
  /** Connections of the rows. Default: 32, or 8 for fresh servers. */
  readonly connections: number | undefined;
  /** Another checkout, whose build is measured by turns with this one. */
  readonly against: string | undefined;
  /** Folder of the files of `foreign-files`. */
  readonly directory: string | undefined;
  /** File for what `foreign-files` finds, besides the report. */
  readonly outcomes: string | undefined;
}

const DEFAULT_ROUNDS = 5;
const DEFAULT_SECONDS = 3;
const MAX = 3_600;

/** @param known Names that may be asked for. @throws Error, in one line, for an option or name that is not known. */
export function parseBenchOptions(args: readonly string[], known: readonly string[]): BenchOptions | "help" {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      rounds: { type: "string", default: String(DEFAULT_ROUNDS) },
      seconds: { type: "string", default: String(DEFAULT_SECONDS) },
      small: { type: "boolean", default: false },
      peer: { type: "string", multiple: true, default: [] },
      "same-headers": { type: "boolean", default: false },
      connections: { type: "string" },
      against: { type: "string" },
      directory: { type: "string" },
      outcomes: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  if (values.help) return "help";
  const unknown = positionals.filter((name) => !known.includes(name));
  if (unknown.length > 0)
    throw new Error(`expected names among ${known.join(", ")}, received ${unknown.join(", ")}`);
  return {
    names: positionals,
    rounds: wholeNumber("--rounds", values.rounds),
    seconds: wholeNumber("--seconds", values.seconds),
    isSmall: values.small,
    peers: values.peer,
    hasSameHeaders: values["same-headers"],
    connections:
      values.connections === undefined ? undefined : wholeNumber("--connections", values.connections),
    against: values.against,
    directory: values.directory,
    outcomes: values.outcomes,
  };
}

function wholeNumber(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > MAX) {
    throw new Error(`${name}: expected a whole number from 1 to ${MAX}, received ${text}`);
  }
  return value;
}
