import { createAddressSet } from "./address-set.js";
import { ASK_EACH_TIME } from "./ask-each-time.js";
import type { Proxies } from "./forwarded.js";
import { headerField } from "./header-field.js";
import { privateCacheControl } from "./private-cache-control.js";
import { checkRequestIdHeader } from "./request-id.js";
import type { Tokens } from "./tokens.js";

/** What stands between a site and the open network, as operators configure it. */
export interface EdgeOptions {
  /** Who may read; undefined: everybody. */
  readonly tokens?: Tokens | undefined;
  /** Addresses and networks whose `X-Forwarded-…` headers and PROXY lines count. Default: none. */
  readonly trustedProxies?: readonly string[];
  readonly proxyProtocol?: boolean;
  /** Lower case. Default: `x-request-id`. */
  readonly requestIdHeader?: string;
  /** Share of requests that are logged, 0 (the default) to 1. */
  readonly accessLogShare?: number;
}

/** The same, checked and made ready. */
export interface SiteEdge {
  readonly tokens: Tokens | undefined;
  readonly proxies: Proxies;
  readonly requestIdHeader: string;
  readonly accessLogShare: number;
  /** Request headers that every answer depends on, as `Vary` has them; empty: none. */
  readonly vary: string;
  /** Lines of every answer, each with its line break before it. */
  readonly fields: string;
  /** The `Cache-Control` to be sent in place of this one. */
  cacheControlOf(cacheControl: string): string;
  /**
   * The same for an answer that quotes the address by which it was asked for. Where a proxy's headers say that, caches do not know
   * that it depends on them: they have to ask each time.
   */
  cacheControlOfAddress(cacheControl: string): string;
}

/** Different ones are as many as datasets that have their own. */
const MAX_REMEMBERED = 256;

/**
 * @param variesByOrigin Whether answers depend on `Origin`.
 * @throws ZpublishError `invalid-config`
 */
export function createSiteEdge(options: EdgeOptions, variesByOrigin: boolean): SiteEdge {
  const { tokens, requestIdHeader = "x-request-id" } = options;
  checkRequestIdHeader(requestIdHeader);
  const vary = [...(tokens === undefined ? [] : ["Authorization"]), ...(variesByOrigin ? ["Origin"] : [])];
  const remembered = new Map<string, string>();
  const trusted = createAddressSet(options.trustedProxies ?? []);

  function cacheControlOf(cacheControl: string): string {
    if (tokens === undefined) return cacheControl;
    let found = remembered.get(cacheControl);
    if (found === undefined) {
      found = privateCacheControl(cacheControl);
      if (remembered.size < MAX_REMEMBERED) remembered.set(cacheControl, found);
    }
    return found;
  }

  return {
    tokens,
    proxies: { trusted, speakProxyProtocol: options.proxyProtocol ?? false },
    requestIdHeader,
    accessLogShare: options.accessLogShare ?? 0,
    vary: vary.join(", "),
    // A token in the query of a page would be told to whatever that page links to.
    fields: tokens === undefined ? "" : headerField("Referrer-Policy", "no-referrer"),
    cacheControlOf,
    cacheControlOfAddress: (cacheControl) => cacheControlOf(trusted.isEmpty ? cacheControl : ASK_EACH_TIME),
  };
}
