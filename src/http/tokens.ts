import { createHash, timingSafeEqual } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { ZpublishError } from "../errors.js";

/** The tokens that let somebody read. Only their hashes are kept. */
export interface Tokens {
  readonly size: number;
  /** Whether a text is one of them. Takes the same time wherever it differs from them, and whichever it is. */
  has(candidate: string): boolean;
}

/** Shorter ones could be guessed. */
const MIN_LENGTH = 16;
/** Longer ones do not fit a request beside the rest of it. */
const MAX_LENGTH = 1_024;
/** All of them are compared for every request: about a quarter of a microsecond each. */
const MAX_TOKENS = 1_000;
const MAX_FILE_BYTES = 2 * 2 ** 20;

/** What RFC 6750 §2.1 lets a bearer token be made of. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/**
 * Reads a file of tokens: one per line; empty lines, and those that begin with `#`, do not count.
 * @throws ZpublishError `invalid-config`, with the number of a line that is no good, never with what it says.
 */
export async function readTokenFile(file: string): Promise<Tokens> {
  let text: string;
  try {
    const { size } = await stat(file);
    if (size > MAX_FILE_BYTES) {
      throw invalid(file, `expected at most ${MAX_FILE_BYTES} bytes, received ${size}`);
    }
    text = await readFile(file, "utf8");
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    throw invalid(file, `cannot be read: ${code}`, error);
  }
  return createTokens(parseTokens(text, file));
}

/** @param tokens As they are; at least one. */
export function createTokens(tokens: readonly string[]): Tokens {
  const hashes = [...new Set(tokens)].map(hashOf);
  return {
    size: hashes.length,
    has(candidate) {
      if (candidate.length < MIN_LENGTH || candidate.length > MAX_LENGTH) return false;
      const hash = hashOf(candidate);
      let isKnown = false;
      // All of them: to stop at the first would tell which it is.
      for (const known of hashes) isKnown = timingSafeEqual(known, hash) || isKnown;
      return isKnown;
    },
  };
}

function hashOf(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

function parseTokens(text: string, file: string): string[] {
  const tokens: string[] = [];
  for (const [index, line] of text
    .replace(/^\ufeff/, "")
    .split("\n")
    .entries()) {
    const token = line.trim();
    if (token === "" || token.startsWith("#")) continue;
    const problem = problemOf(token);
    if (problem !== undefined) throw invalid(file, `line ${index + 1}: ${problem}`);
    tokens.push(token);
  }
  if (tokens.length === 0) throw invalid(file, "expected at least one token, received none");
  if (tokens.length > MAX_TOKENS) {
    throw invalid(file, `expected at most ${MAX_TOKENS} tokens, received ${tokens.length}`);
  }
  return tokens;
}

/** Says nothing of the token but how long it is. */
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
