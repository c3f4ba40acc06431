import type { z } from "zod";

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One option that is a single value. Its key in `OPTIONS` is its key in the file; flag (`cacheDir` →
 * `--cache-dir`) and variable (`ZPUBLISH_CACHE_DIR`) follow from it.
 */
export interface OptionSpec<T> {
  /** What stands for the value in the help; null for a switch, which takes none on the command line. */
  readonly placeholder: string | null;
  readonly summary: string;
  readonly schema: z.ZodType<T>;
  /** The text of a flag or variable as the JSON value that `schema` takes. */
  readonly fromText: (text: string) => unknown;
  readonly defaultValue: (env: Environment) => T;
  /** For help and README, where the default depends on the machine. */
  readonly defaultText?: string;
  /** True: a path, relative to the file that says it, or to the working directory. */
  readonly isPath?: true;
}

/** A row of the table, its type taken from its schema. */
export function option<T>(spec: OptionSpec<T>): OptionSpec<T> {
  return spec;
}

export const asText = (text: string): unknown => text;

/** Leaves a text that is no plain number to the schema, which then shows it as it was written. */
export const asNumber = (text: string): unknown =>
  /^[+-]?\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : text;

const BOOLEAN_WORDS: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  on: true,
  false: false,
  0: false,
  no: false,
  off: false,
};

export const asBoolean = (text: string): unknown => BOOLEAN_WORDS[text.trim().toLowerCase()] ?? text;
