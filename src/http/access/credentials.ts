import { createHash, createHmac, timingSafeEqual } from "node:crypto";
import { createBoundedMap } from "../../collections/bounded-map.js";
import { ZpublishError } from "../../errors.js";
import type { MaybePromise } from "../../event-loop/maybe-promise.js";
import { createGrant, type Grant } from "./grants.js";
import type { Issuer } from "./issuer.js";
import type { TokenEntry } from "./tokens.js";

/** Parts that {@link createCredentials} needs. */
interface CredentialParts {
  /** Default: none. */
  readonly tokens?: readonly TokenEntry[];
  /** Verifies JWTs. Default: there are none. */
  readonly issuer?: Issuer | undefined;
  /** Signs tickets. */
  readonly signingKey: string;
}

/** What lets clients read: tokens, JWTs, and the tickets that were signed for either. */
export type ReaderCredentials = ReturnType<typeof createCredentials>;

/** JWTs and tickets whose signature was checked, some hundred bytes each. */
const MAX_VERIFIED = 10_000;
/** Longest ticket: it has to fit into a cookie. */
const MAX_TICKET_LENGTH = 3_800;

/** A ticket: what it says, and the signature of that (base64url). */
const TICKET = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

/** Creates the credentials of a configuration. Of tokens and of what was verified, only digests are kept. */
export function createCredentials({ tokens = [], issuer, signingKey }: CredentialParts) {
  const sign = (use: string, text: string) =>
    createHmac("sha256", signingKey).update(`${use}\0${text}`).digest("base64url");
  // With the key, so that a ticket does not help to guess a token.
  const nameOf = (origin: string) => sign("origin", origin).slice(0, 16);

  const granted = tokens.map(({ token, patterns, expiresMs }) => {
    const digest = digestOf(token);
    const lists = patterns.length === 0 ? [] : [patterns];
    return [digest, createGrant(nameOf(digest), lists, expiresMs)] as const;
  });
  const byToken = new Map(granted);
  const issuing = issuer && createGrant(nameOf(`issuer ${issuer.name}`), []);
  const origins = new Map(
    [...byToken.values(), ...(issuing ? [issuing] : [])].map((each) => [each.origin, each]),
  );
  const verified = createBoundedMap<Grant>({ maxEntries: MAX_VERIFIED });

  async function findJwt(candidate: string, digest: string): Promise<Grant | undefined> {
    const claims = await issuer?.verify(candidate);
    if (claims === undefined || issuing === undefined) return undefined;
    const grant = createGrant(issuing.origin, [claims.patterns], claims.expiresMs);
    verified.set(digest, grant);
    return valid(grant);
  }

  function readTicket(ticket: string): Grant | undefined {
    const [, payload = "", signature = ""] = TICKET.exec(ticket) ?? [];
    const expected = sign("ticket", payload);
    if (signature === "" || !timingSafeEqual(Buffer.from(signature), Buffer.from(expected))) return undefined;
    const [seconds, name, ...rules] = JSON.parse(String(Buffer.from(payload, "base64url"))) as Ticket;
    const origin = origins.get(name);
    if (origin === undefined) return undefined;
    const expiresMs = Math.min(seconds * 1_000, origin.expiresMs);
    return createGrant(name, [...origin.rules, ...rules], expiresMs);
  }

  return {
    /**
     * Finds what a token or a JWT grants; undefined if it is not valid, or not any more.
     * @throws ZpublishError `issuer-unreadable` if that cannot be told now
     */
    find(candidate: string): MaybePromise<Grant | undefined> {
      const digest = digestOf(candidate);
      const known = byToken.get(digest) ?? verified.get(digest);
      if (known !== undefined) return valid(known);
      return issuer?.mayHave(candidate) ? findJwt(candidate, digest) : undefined;
    },
    /** Finds what a ticket grants; undefined if it is not valid, or not any more. Tickets of a token that was removed are not. */
    findTicket(ticket: string): Grant | undefined {
      // A ticket is no token, and a token no ticket.
      const key = `ticket ${digestOf(ticket)}`;
      let found = verified.get(key);
      if (found === undefined) {
        found = readTicket(ticket);
        if (found !== undefined) verified.set(key, found);
      }
      return found && valid(found);
    },
    /**
     * Signs a ticket, which grants what a grant does until both have expired.
     * @param narrowed Patterns that datasets have to match as well; none if they need not.
     * @throws ZpublishError `too-large` if the patterns are too many for a ticket
     */
    signTicket(grant: Grant, expiresMs: number, narrowed: readonly string[]): string {
      const own = grant.rules.slice(origins.get(grant.origin)?.rules.length);
      const rules = narrowed.length === 0 ? own : [...own, narrowed];
      const said: Ticket = [Math.floor(expiresMs / 1_000), grant.origin, ...rules];
      const payload = Buffer.from(JSON.stringify(said)).toString("base64url");
      const ticket = `${payload}.${sign("ticket", payload)}`;
      if (ticket.length <= MAX_TICKET_LENGTH) return ticket;
      const lengths = `expected at most ${MAX_TICKET_LENGTH} characters, received ${ticket.length}`;
      throw new ZpublishError("too-large", `Ticket with all patterns: ${lengths}`);
    },
  };
}

/** What a ticket says: its end in seconds, the name of its origin, and the rules that it has besides those of the origin. */
type Ticket = readonly [seconds: number, origin: string, ...rules: readonly (readonly string[])[]];

function valid(grant: Grant): Grant | undefined {
  return grant.expiresMs > Date.now() ? grant : undefined;
}

/** Digests are compared in place of credentials, so that the time of a look-up tells nothing of them. */
function digestOf(credential: string): string {
  return createHash("sha256").update(credential).digest("base64url");
}
