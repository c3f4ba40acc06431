import { readFile } from "node:fs/promises";
import { ZpublishError } from "../../errors.js";

/** A token of the token file, and what it opens. */
export interface TokenEntry {
  readonly token: string;
  /** Patterns of dataset ids, as in `Grant`; none if it opens all datasets. */
  readonly patterns: readonly string[];
  /** End of its validity in milliseconds, on the clock of `Date.now()`. Infinity if it has none. */
  readonly expiresMs: number;
}

/** Shorter ones could be guessed. */
const MIN_LENGTH = 16;
/** Longer ones do not fit into a request. */
const MAX_LENGTH = 1_024;

/** The characters of a bearer token (RFC 6750 §2.1). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** Before the end of a token's validity. */
const EXPIRES = "expires=";
const DATE = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d))?$/;

/**
 * Reads a file of tokens: one per line, with patterns and `expires=` after it, separated by spaces. Empty lines and lines that begin with
 * `#` are skipped.
 * @throws ZpublishError `invalid-config`, with the number of the line that is wrong, never with its text.
 */
export async function readTokenFile(file: string): Promise<readonly TokenEntry[]> {
  const lines = (await readSecretFile(file, "Token file")).split("\n");
  const entries = new Map<string, TokenEntry>();
  for (const [index, line] of lines.entries()) {
    const [token = "", ...words] = line.trim().split(/\s+/);
    if (token === "" || token.startsWith("#")) continue;
    const entry = entryOf(token, words);
    const problem = entries.has(token)
      ? "expected another token than those of the lines before, received one of them"
      : problemOf(entry, words);
    if (problem !== undefined) throw invalid("Token file", file, `line ${index + 1}: ${problem}`);
    entries.set(token, entry);
  }
  if (entries.size === 0) throw invalid("Token file", file, "expected at least one token, received none");
  return [...entries.values()];
}

function entryOf(token: string, words: readonly string[]): TokenEntry {
  const ends = words.filter((word) => word.startsWith(EXPIRES)).map((word) => word.slice(EXPIRES.length));
  const times = ends.map((end) => (DATE.test(end) ? Date.parse(end) : Number.NaN));
  return {
    token,
    patterns: words.filter((word) => !word.startsWith(EXPIRES)),
    // NaN if one of them is no date.
    expiresMs: Math.min(...times),
  };
}

/** Says what is wrong with a line without quoting it; undefined if nothing is. */
function problemOf({ token, expiresMs }: TokenEntry, words: readonly string[]): string | undefined {
  if (token.length < MIN_LENGTH || token.length > MAX_LENGTH)
    return `expected a token of ${MIN_LENGTH} to ${MAX_LENGTH} characters, received one of ${token.length}`;
  if (!TOKEN.test(token))
    return "expected a token of letters, digits and -._~+/ with = at its end only, received other characters";
  if (Number.isNaN(expiresMs) || words.filter((word) => word.startsWith(EXPIRES)).length > 1)
    return "expected at most one end such as expires=2027-01-31 or expires=2027-01-31T12:00:00Z, received another";
  return undefined;
}

/** Characters of a signing key at least. */
const MIN_KEY_LENGTH = 32;

/** Reads the key that signs tickets: the text of a file. @throws ZpublishError `invalid-config` */
export async function readSigningKey(file: string): Promise<string> {
  const key = (await readSecretFile(file, "Signing key")).trim();
  if (key.length >= MIN_KEY_LENGTH) return key;
  throw invalid(
    "Signing key",
    file,
    `expected at least ${MIN_KEY_LENGTH} characters, received ${key.length}`,
  );
}

async function readSecretFile(file: string, what: string): Promise<string> {
  try {
    return (await readFile(file, "utf8")).replace(/^\ufeff/, "");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw invalid(what, file, `cannot be read: ${code}`, error);
  }
}

function invalid(what: string, file: string, problem: string, cause?: unknown): ZpublishError {
  return new ZpublishError("invalid-config", `${what} '${file}': ${problem}`, { cause });
}
