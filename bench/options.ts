import { parseArgs } from "node:util";

export interface BenchOptions {
  /** Rows, experiments and programs asked for by name; none for the default ones. */
  readonly names: readonly string[];
  readonly rounds: number;
  readonly seconds: number;
  readonly isSmall: boolean;
  readonly peers: readonly string[];
  /** Whether bare uWebSockets.js is measured with the headers of zpublish, too. */
  readonly hasSameHeaders: boolean;
  /** Of programs that run for a time. */
  readonly minutes: number;
  /** Of programs that draw at random; undefined: another one every time. */
  readonly seed: number | undefined;
  /** Folder of the files of `foreign-files`. */
  readonly directory: string | undefined;
  /** File for what `foreign-files` finds, besides the report. */
  readonly outcomes: string | undefined;
}

export const DEFAULT_ROUNDS = 5;
export const DEFAULT_SECONDS = 3;
export const DEFAULT_MINUTES = 1;
const MAX = 3_600;
const MAX_SEED = 2 ** 31;

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
      minutes: { type: "string", default: String(DEFAULT_MINUTES) },
      seed: { type: "string" },
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
    minutes: wholeNumber("--minutes", values.minutes),
    seed: values.seed === undefined ? undefined : wholeNumber("--seed", values.seed, MAX_SEED),
    directory: values.directory,
    outcomes: values.outcomes,
  };
}

function wholeNumber(name: string, text: string, max = MAX): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new Error(`${name}: expected a whole number from 1 to ${max}, received ${text}`);
  }
  return value;
}
