import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { ZpublishError } from "../../errors.js";

/** The tokens that let a client read. Only their SHA-256 digests are kept, so that the time of a look-up tells nothing of them. */
export interface Tokens {
  has(candidate: string): boolean;
}

/** Shorter ones could be guessed. */
const MIN_LENGTH = 16;
/** Longer ones do not fit into a request. */
const MAX_LENGTH = 1_024;

/** The characters of a bearer token (RFC 6750 §2.1). */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Reads a file of tokens: one per line; empty lines and lines that begin with `#` are skipped.
 * @throws ZpublishError `invalid-config`, with the number of the line that is wrong, never with its text.
 */
export async function readTokenFile(file: string): Promise<Tokens> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw invalid(file, `cannot be read: ${code}`, error);
  }
  return createTokens(parseTokens(text, file));
}

/** @param tokens In plain text. */
export function createTokens(tokens: readonly string[]): Tokens {
  const digests = new Set(tokens.map(digestOf));
  return {
    has: (candidate) =>
      candidate.length >= MIN_LENGTH && candidate.length <= MAX_LENGTH && digests.has(digestOf(candidate)),
  };
}

function digestOf(token: string): string {
  return createHash("sha256").update(token).digest("base64");
}

function parseTokens(text: string, file: string): string[] {
  const tokens: string[] = [];
  const lines = text.replace(/^\ufeff/, "").split("\n");
  for (const [index, line] of lines.entries()) {
    const token = line.trim();
    if (token === "" || token.startsWith("#")) continue;
    const problem = problemOf(token);
    if (problem !== undefined) throw invalid(file, `line ${index + 1}: ${problem}`);
    tokens.push(token);
  }
  if (tokens.length === 0) throw invalid(file, "expected at least one token, received none");
  return tokens;
}

/** Says what is wrong with a token without quoting it; undefined if nothing is. */
function problemOf(token: string): string | undefined {
  if (token.length < MIN_LENGTH || token.length > MAX_LENGTH) {
    return `expected a token of ${MIN_LENGTH} to ${MAX_LENGTH} characters, received one of ${token.length}`;
  }
  if (TOKEN.test(token)) return undefined;
  return "expected a token of letters, digits and -._~+/ with = at its end only, received other characters";
}

function invalid(file: string, what: string, cause?: unknown): ZpublishError {
  return new ZpublishError("invalid-config", `Token file '${file}': ${what}`, { cause });
}
