import { BlockList, isIP } from "node:net";
import { ZpublishError } from "../../errors.js";
import type { ReaderCredentials } from "./credentials.js";

/** A set of IP addresses and networks. */
export type AddressSet = ReturnType<typeof createAddressSet>;

const MAPPED_PREFIX = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Creates a set.
 * @param networks Addresses, or networks in CIDR notation.
 * @throws ZpublishError `invalid-config`
 */
export function createAddressSet(networks: readonly string[]) {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    const family = familyOf(address);
    if (family === undefined) {
      throw new ZpublishError("invalid-config", `Address: expected one or a network, received '${network}'`);
    }
    if (bits === undefined) list.addAddress(address, family);
    else list.addSubnet(address, Number(bits), family);
  }
  return {
    isEmpty: networks.length === 0,
    /** Whether an address is in the set; text that is none is not. IPv4 within IPv6 (`::ffff:192.0.2.1`) counts as IPv4. */
    has(address: string): boolean {
      const plain = MAPPED_PREFIX.exec(address)?.[1] ?? address;
      const family = familyOf(plain);
      return family !== undefined && list.check(plain, family);
    },
  };
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  return version === 0 ? undefined : version === 4 ? "ipv4" : "ipv6";
}

/** A `Cache-Control` with which caches keep an answer, and revalidate it at each request. */
export const ASK_EACH_TIME = "public, max-age=0, must-revalidate";

/** Who may read, which proxies are trusted, and which requests are logged, as operators configure it. */
export interface AccessOptions {
  /** What lets a client read; undefined if everybody may read everything. */
  readonly credentials?: ReaderCredentials | undefined;
  /** Addresses and networks of proxies whose `X-Forwarded-…` headers are believed. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Header with the id of a request, in lower case. Default: `x-request-id`. */
  readonly requestIdHeader?: string;
  /** Share of requests in the access log, from 0 (the default) to 1. */
  readonly accessLogShare?: number;
}

/** {@link AccessOptions}, checked and prepared. */
export type AccessRules = ReturnType<typeof createAccessRules>;

/**
 * Checks and prepares access options.
 * @param variesByOrigin Whether answers depend on `Origin`.
 * @throws ZpublishError `invalid-config`
 */
export function createAccessRules(options: AccessOptions, variesByOrigin: boolean) {
  const { credentials, requestIdHeader = "x-request-id" } = options;
  checkRequestIdHeader(requestIdHeader);
  const vary = [
    ...(credentials === undefined ? [] : ["Authorization", "Cookie"]),
    ...(variesByOrigin ? ["Origin"] : []),
  ];
  const trustedProxies = createAddressSet(options.trustedProxies ?? []);

  const cacheControlOf = (cacheControl: string) =>
    credentials === undefined ? cacheControl : privateCacheControl(cacheControl);

  return {
    credentials,
    trustedProxies,
    requestIdHeader,
    accessLogShare: options.accessLogShare ?? 0,
    /** Request headers that every answer depends on, as `Vary` lists them; empty if there are none. */
    vary: vary.join(", "),
    /** Returns the `Cache-Control` to send in place of this one. */
    cacheControlOf,
    /**
     * Returns the same for an answer that contains the service's address. With trusted proxies, that depends on headers that caches
     * do not know of, so that they have to revalidate each time.
     */
    cacheControlOfAddress: (cacheControl: string) =>
      cacheControlOf(trustedProxies.isEmpty ? cacheControl : ASK_EACH_TIME),
  };
}

/** Directives that let shared caches keep an answer (RFC 9111 §5.2.2), with their values. */
const SHARED = /^(?:public|s-maxage(?:=.*)?|proxy-revalidate)$/i;
const UNSHARED = /^(?:private|no-store)$/i;

/** Returns a `Cache-Control` for answers that need a credential: what it says to the client's own cache stays, shared caches keep nothing. */
export function privateCacheControl(cacheControl: string): string {
  const directives = cacheControl
    .split(",")
    .map((directive) => directive.trim())
    .filter((directive) => directive !== "" && !SHARED.test(directive));
  return directives.some((directive) => UNSHARED.test(directive))
    ? directives.join(", ")
    : ["private", ...directives].join(", ");
}

/** Headers that contain secrets; ids are written to logs and answers. */
const SECRET = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Checks the name of the header of request ids. @throws ZpublishError `invalid-config` if that header contains secrets. */
function checkRequestIdHeader(name: string): void {
  if (!SECRET.has(name)) return;
  throw new ZpublishError(
    "invalid-config",
    `Header of request ids: expected one such as 'x-request-id', received '${name}', which is never logged`,
  );
}
