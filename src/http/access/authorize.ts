import { ZpublishError } from "../../errors.js";
import type { Exchange } from "../exchange.js";
import type { Tokens } from "./tokens.js";

const BEARER = /^bearer +(\S+) *$/i;

/**
 * Checks that a request has a token: in its `Authorization` header (RFC 6750 §2.1) or, for clients that cannot send headers, as
 * `token` in its query.
 * @throws ZpublishError `unauthorized`; its detail `wasGiven` says whether the request had any token.
 */
export function authorize(exchange: Exchange, tokens: Tokens): void {
  const header = exchange.header("authorization");
  const query = exchange.query;
  const fromHeader = header === undefined ? undefined : BEARER.exec(header)?.[1];
  if (fromHeader !== undefined && tokens.has(fromHeader)) return;
  const fromQuery = query === "" ? undefined : queryToken(query);
  if (fromQuery !== undefined && tokens.has(fromQuery)) return;
  const wasGiven = header !== undefined || fromQuery !== undefined;
  throw new ZpublishError(
    "unauthorized",
    wasGiven ? "Expected a valid token, received another" : "Expected a token, received none",
    { details: { wasGiven } },
  );
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
