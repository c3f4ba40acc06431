import { isIP } from "node:net";
import type { HttpResponse } from "../listening/listener.js";
import type { AddressSet } from "./access-rules.js";

/** The client of a request, and whether a trusted proxy passed the request on. */
export interface Forwarded {
  /** Address of the client; empty if its connection is closed. */
  readonly client: string;
  /** Whether the request came from a trusted proxy, so that its headers about host, scheme and prefix are believed. */
  readonly isTrusted: boolean;
}

/** Entries of `X-Forwarded-For` that are read, from the last. */
const MAX_HOPS = 32;

/** Finds the client of a request: the peer of the connection or, if that is a trusted proxy, the one in `X-Forwarded-For`. */
export function forwardedOf(
  res: HttpResponse,
  head: { listHeader(name: string): string | undefined },
  trusted: AddressSet,
): Forwarded {
  const peer = addressText(res.getRemoteAddress());
  if (trusted.isEmpty || !trusted.has(peer)) return { client: peer, isTrusted: false };
  const list = head.listHeader("x-forwarded-for");
  return { client: list === undefined ? peer : lastUntrusted(list, peer, trusted), isTrusted: true };
}

/** The first twelve bytes of an IPv4 address within IPv6 (RFC 4291 §2.5.5.2), in hexadecimal. */
const MAPPED = "00000000000000000000ffff";

/**
 * Writes an address as text: IPv4 in dots, also if it is within IPv6; IPv6 in short form (RFC 5952). Empty if there is none.
 * @param address 4 or 16 bytes, or a text of this form that may have IPv4 within IPv6.
 */
function addressText(address: ArrayBuffer | string): string {
  if (typeof address === "string") return address.replace(/^::ffff:(?=\d+\.)/, "");
  const bytes = new Uint8Array(address);
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return "";
  const hex = Buffer.from(bytes).toString("hex");
  if (hex.startsWith(MAPPED)) return bytes.subarray(12).join(".");
  return new URL(`http://[${hex.match(/..../g)?.join(":")}]`).hostname.slice(1, -1);
}

/**
 * Finds the client in `X-Forwarded-For`: the last address that no trusted proxy has. Entries before it may be made up.
 * @param peer Address of the trusted proxy that sent the request; returned if the list has no usable entry.
 */
export function lastUntrusted(list: string, peer: string, trusted: AddressSet): string {
  let client = peer;
  let end = list.length;
  for (let hops = 0; hops < MAX_HOPS && end > 0; hops++) {
    const comma = list.lastIndexOf(",", end - 1);
    const address = addressOf(list.slice(comma + 1, end).trim());
    // A trusted proxy wrote no address (`unknown`): entries before this one cannot be believed.
    if (address === undefined) return client;
    client = address;
    if (!trusted.has(address)) return client;
    end = comma;
  }
  return client;
}

const WITH_PORT = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;

/** Returns the address in an entry of the list, without port and brackets; undefined if it is none. */
function addressOf(entry: string): string | undefined {
  const match = WITH_PORT.exec(entry);
  const address = match?.[1] ?? match?.[2] ?? entry;
  return isIP(address) === 0 || address.length > 45 ? undefined : address;
}

/** What a request says about the URL of the service. */
interface ServicePlace {
  /** `http` or `https`, as the request came to this server. */
  readonly scheme: string;
  /** Empty, or begins with a slash and ends without one. */
  readonly rootPath: string;
  /** Whether a trusted proxy sent the request, so that its headers are believed. */
  readonly isTrusted: boolean;
  header(name: string): string | undefined;
}

const HOST = /^(?:([A-Za-z0-9._-]{1,253})|\[([0-9A-Fa-f:.]{2,45})\])(?::([0-9]{1,5}))?$/;
const PREFIX = /^(?:\/[A-Za-z0-9._~-]{1,128}){0,16}\/?$/;
const DOT_SEGMENT = /\/\.\.?(?:\/|$)/;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/**
 * Returns the absolute URL of the service as the client sees it, without a slash at its end: `https://data.example/prefix`.
 * Malformed headers are ignored. Of several forwarded values the first is the client's.
 */
export function serviceUrlOf(place: ServicePlace): string {
  const { isTrusted, header } = place;
  const forwarded = isTrusted ? firstOf(header("x-forwarded-proto"))?.toLowerCase() : undefined;
  const scheme = forwarded === "http" || forwarded === "https" ? forwarded : place.scheme;
  const host =
    (isTrusted ? hostOf(header("x-forwarded-host"), scheme) : undefined) ??
    hostOf(header("host"), scheme) ??
    "localhost";
  return `${scheme}://${host}${forwardedPrefix(place) ?? place.rootPath}`;
}

/**
 * Returns the path under which a trusted proxy publishes the service, in place of its own root path: empty, or with a slash before
 * it and none behind it. Undefined if no proxy names one.
 */
export function forwardedPrefix({ isTrusted, header }: Omit<ServicePlace, "scheme">): string | undefined {
  const prefix = isTrusted ? firstOf(header("x-forwarded-prefix")) : undefined;
  if (prefix === undefined || !PREFIX.test(prefix) || DOT_SEGMENT.test(prefix)) return undefined;
  return prefix.replace(/\/$/, "");
}

/** Returns host and port, without the default port of the scheme; undefined if the header is malformed. */
function hostOf(value: string | undefined, scheme: string): string | undefined {
  const match = HOST.exec(firstOf(value) ?? "");
  if (match === null) return undefined;
  const [, name, address, port] = match;
  const host = name ?? `[${address}]`;
  if (port === undefined) return host;
  const number = Number(port);
  if (number < 1 || number > 65_535) return undefined;
  return String(number) === DEFAULT_PORTS[scheme] ? host : `${host}:${number}`;
}

function firstOf(value: string | undefined): string | undefined {
  return value?.split(",", 1)[0]?.trim();
}

/**
 * Returns the location of a path with a slash behind it: the same path on the same host, in printable ASCII.
 * @param path As it came, root path included; `query` without its question mark.
 */
export function locationWithSlash(path: string, query: string): string {
  const target = query === "" ? `${path}/` : `${path}/?${query}`;
  // `//host/…` and `/\host/…` would lead to another host: browsers take a backslash for a slash.
  const local = target.startsWith("//") ? `/.${target}` : target;
  return local.replace(/[^\x21-\x7e]+|[\\"<>^`{|}#]/g, (unsafe) => encodeURIComponent(unsafe));
}
