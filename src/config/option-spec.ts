import type { z } from "zod";

/** Environment variables, as in `process.env`. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * One option that is a single value. Its key in `OPTIONS` is its key in the file. Flag (`cacheDir` → `--cache-dir`) and
 * variable (`ZPUBLISH_CACHE_DIR`) derive from it.
 */
export interface OptionSpec<T> {
  /** Placeholder of the value in the help; null for a switch, which has no value on the command line. */
  readonly placeholder: string | null;
  readonly summary: string;
  readonly schema: z.ZodType<T>;
  /** Converts the text of a flag or variable to the JSON value that `schema` checks. */
  readonly fromText: (text: string) => unknown;
  readonly defaultValue: (env: Environment) => T;
  /** Default in help and documents, if it depends on the machine. */
  readonly defaultText?: string;
  /** Whether the value is a path, relative to the configuration file, or to the working directory. */
  readonly isPath?: true;
}

/** Returns a row of the table, with its type from its schema. */
export function option<T>(spec: OptionSpec<T>): OptionSpec<T> {
  return spec;
}

/** Leaves a text as it is. */
export const asText = (text: string): unknown => text;

/** Converts a plain number. Another text stays as it is, for the schema's message. */
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

/** Converts `true`, `1`, `yes`, `on` and their opposites. Another text stays as it is, for the schema's message. */
export const asBoolean = (text: string): unknown => BOOLEAN_WORDS[text.trim().toLowerCase()] ?? text;
