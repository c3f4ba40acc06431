import { ZpublishError } from "../../errors.js";
import type { MaybePromise } from "../../event-loop/maybe-promise.js";
import type { ReaderCredentials } from "./credentials.js";
import type { Grant } from "./grants.js";

/** A request that is authorized. */
interface AskingRequest {
  header(name: string): string | undefined;
  readonly query: string;
  /** Beginning of its path that has a ticket, as {@link ticketPrefix} returns it. */
  readonly prefix: string;
}

/** Name of the cookie with a ticket. */
export const COOKIE = "zpublish_session";

const BEARER = /^bearer +(\S+) *$/i;
const COOKIE_TICKET = new RegExp(`(?:^|;) *${COOKIE}=([^;]*)`);
/** Beginning of paths, root path left out, before a ticket. */
const PREFIX = "/s/";
const TICKET_PREFIX = /^\/s\/[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{43}(?=\/|$)/;
/** What may be a ticket in a path, wherever it is and even if it is damaged. */
const SECRET = /(?<=\/s\/)[^/?]{40,}|(?<=\/)[\w-]{16,}\.[\w-]{43}(?=\/|$)/g;

/** Returns the beginning of a path with a ticket, `/s/{ticket}`; empty if it has none. @param path As it came, root path included. */
export function ticketPrefix(path: string, rootPath: string): string {
  if (!path.startsWith(PREFIX, rootPath.length) || !path.startsWith(rootPath)) return "";
  return TICKET_PREFIX.exec(path.slice(rootPath.length))?.[0] ?? "";
}

/** Replaces the ticket in a path or URL: tickets are in no log. */
export function withoutTicket(path: string): string {
  return path.replace(SECRET, "…");
}

/** Returns the token or JWT in the header `Authorization` (RFC 6750 §2.1); undefined if there is none. */
export function bearerOf(request: Pick<AskingRequest, "header">): string | undefined {
  const value = request.header("authorization");
  return value === undefined ? undefined : BEARER.exec(value)?.[1];
}

/** Places of credentials in a request, in the order in which they are tried. */
const PLACES: readonly ((
  request: AskingRequest,
  credentials: ReaderCredentials,
) => MaybePromise<Grant | undefined>)[] = [
  ({ prefix }, { findTicket }) => (prefix === "" ? undefined : findTicket(prefix.slice(PREFIX.length))),
  (request, { find }) => {
    const bearer = bearerOf(request);
    return bearer === undefined ? undefined : find(bearer);
  },
  ({ query }, { find }) => {
    const token = query === "" ? undefined : queryToken(query);
    return token === undefined ? undefined : find(token);
  },
  (request, { findTicket }) => {
    const ticket = cookieTicket(request);
    return ticket === undefined ? undefined : findTicket(ticket);
  },
];

/**
 * Returns what a request may read by the first of its credentials that is valid: the ticket in its path, the header `Authorization`, `token`
 * in its query, the cookie.
 * @throws ZpublishError `unauthorized`, whose detail `wasGiven` says whether the request had any; `issuer-unreadable`
 */
export function authorize(
  request: AskingRequest,
  credentials: ReaderCredentials,
  from = 0,
): MaybePromise<Grant> {
  for (let at = from; at < PLACES.length; at++) {
    const found = PLACES[at]?.(request, credentials);
    if (found instanceof Promise)
      return found.then((grant) => grant ?? authorize(request, credentials, at + 1));
    if (found !== undefined) return found;
  }
  const wasGiven =
    request.prefix !== "" ||
    request.header("authorization") !== undefined ||
    queryToken(request.query) !== undefined ||
    cookieTicket(request) !== undefined;
  throw new ZpublishError(
    "unauthorized",
    wasGiven ? "Expected a valid token, received another" : "Expected a token, received none",
    { details: { wasGiven } },
  );
}

function cookieTicket(request: AskingRequest): string | undefined {
  return COOKIE_TICKET.exec(request.header("cookie") ?? "")?.[1];
}

/**
 * Returns the first `token` of a query, percent-decoded. A plus sign stands for itself: tokens may have some, and no spaces.
 * Undefined if there is none, or it is not valid UTF-8.
 */
export function queryToken(query: string): string | undefined {
  for (const pair of query.split("&")) {
    if (!pair.startsWith("token=")) continue;
    try {
      return decodeURIComponent(pair.slice("token=".length));
    } catch {
      return undefined;
    }
  }
  return undefined;
}
