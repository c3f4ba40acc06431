import { messageOf, ZpublishError } from "../../errors.js";
import { joined } from "../../event-loop/joined.js";
import type { Log } from "../../observe/log.js";

/** An issuer of JWTs, as operators configure it. */
export interface IssuerOptions {
  /** URL of its keys (JWK Set, RFC 7517). */
  readonly jwksUrl: string;
  /** What the claim `iss` has to be. */
  readonly issuer: string;
  /** What the claim `aud` has to be or contain. */
  readonly audience: string;
  /** Name of the claim with the patterns of datasets: a list of texts, or one text with spaces between them. */
  readonly claim: string;
}

/** What a JWT says. */
interface JwtClaims {
  /** Patterns of dataset ids, as in `Grant`. */
  readonly patterns: readonly string[];
  /** On the clock of `Date.now()`. */
  readonly expiresMs: number;
}

/** Verifies the JWTs of one issuer (RFC 7519). */
export type Issuer = ReturnType<typeof createIssuer>;

/** Signatures that only the issuer can make; those with a shared secret and `none` are refused. */
const ALGORITHMS = [
  ...["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
];
/** Three parts of base64url, the first of which begins with `{"`. */
const JWT = /^eyJ[\w-]+\.[\w-]+\.[\w-]+$/;
/** Time that the issuer has to send its keys, and bytes that these may have. */
const FETCH_TIMEOUT_MS = 5_000;
const MAX_BYTES = 2 ** 20;
/** Age from which on keys are fetched again in the background. */
const FRESH_MS = 600_000;
/** Time after an attempt in which a key that is not known fetches none. */
const PAUSE_MS = 30_000;
/** Requests that wait for keys at a time; others are refused at once. */
const MAX_WAITING = 100;
/** Difference between clocks, in seconds. */
const CLOCK_TOLERANCE = 5;

/**
 * Creates an issuer, whose keys are fetched at its first JWT. They are kept while they cannot be fetched again.
 * @param timing Another clock in milliseconds, and another time-out, only in tests.
 */
export function createIssuer(
  options: IssuerOptions,
  log: Log,
  { now = () => performance.now(), timeoutMs = FETCH_TIMEOUT_MS } = {},
) {
  const { jwksUrl, issuer, audience, claim } = options;
  let keys: ReturnType<typeof import("jose").createLocalJWKSet> | undefined;
  let triedMs = Number.NEGATIVE_INFINITY;
  let failure: unknown;
  let waiting = 0;

  const refresh = joined(async () => {
    triedMs = now();
    try {
      const { createLocalJWKSet } = await import("jose");
      keys = createLocalJWKSet(await fetchJson(jwksUrl, timeoutMs));
      failure = undefined;
    } catch (error) {
      failure = error;
      log.warn({ reason: messageOf(error) }, "the keys of the issuer of JWTs cannot be fetched");
    }
  });

  /** Waits for keys that are newer than those known. Does not ask for them if that was just tried. */
  async function wait(): Promise<void> {
    if (refresh.running === undefined && now() < triedMs + PAUSE_MS) return;
    if (waiting >= MAX_WAITING) throw unreadable(new Error(`${waiting} requests wait for them`));
    waiting++;
    await refresh().finally(() => waiting--);
  }

  /** Verifies with the keys that are known. */
  async function check(token: string): Promise<JwtClaims | "invalid" | "unknown key"> {
    if (keys === undefined) throw unreadable(failure);
    const { jwtVerify, errors } = await import("jose");
    try {
      const rules = { issuer, audience, algorithms: ALGORITHMS, requiredClaims: ["exp"] };
      const { payload } = await jwtVerify(token, keys, { ...rules, clockTolerance: CLOCK_TOLERANCE });
      return { patterns: patternsOf(payload[claim]), expiresMs: (payload.exp as number) * 1_000 };
    } catch (error) {
      if (error instanceof errors.JWKSNoMatchingKey) return "unknown key";
      if (error instanceof errors.JOSEError) return "invalid";
      // A key that is none.
      throw unreadable(error);
    }
  }

  return {
    options,
    name: issuer,
    /** Tells whether a text may be a JWT. */
    mayHave: (candidate: string) => JWT.test(candidate),
    /**
     * Verifies a JWT: its signature, and the claims `iss`, `aud`, `exp` and `nbf`. Undefined if it is not valid.
     * @throws ZpublishError `issuer-unreadable` if its key is not known, and the issuer's keys could not be read lately
     */
    async verify(token: string): Promise<JwtClaims | undefined> {
      if (keys === undefined) await wait();
      else if (now() > triedMs + FRESH_MS) void refresh();
      let claims = await check(token);
      if (claims === "unknown key") {
        await wait();
        claims = await check(token);
      }
      if (claims === "unknown key" && failure !== undefined) throw unreadable(failure);
      return typeof claims === "string" ? undefined : claims;
    },
  };
}

function patternsOf(claim: unknown): readonly string[] {
  const all: readonly unknown[] =
    typeof claim === "string" ? claim.split(" ") : Array.isArray(claim) ? claim : [];
  return all.filter((each): each is string => typeof each === "string" && each !== "");
}

/** Fetches JSON in bounded time and memory; redirects are not followed. */
async function fetchJson(url: string, timeoutMs: number) {
  const response = await fetch(url, {
    redirect: "error",
    headers: { accept: "application/json" },
    signal: AbortSignal.timeout(timeoutMs),
  });
  if (!response.ok) throw new Error(`expected status 200, received ${response.status}`);
  const parts: Uint8Array[] = [];
  let byteLength = 0;
  for await (const part of response.body ?? []) {
    byteLength += part.byteLength;
    if (byteLength > MAX_BYTES) throw new Error(`expected at most ${MAX_BYTES} bytes, received more`);
    parts.push(part);
  }
  return JSON.parse(Buffer.concat(parts).toString());
}

function unreadable(cause: unknown): ZpublishError {
  const message = `the keys of the issuer of JWTs cannot be read: ${messageOf(cause)}`;
  return new ZpublishError("issuer-unreadable", message, { cause });
}
