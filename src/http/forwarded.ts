import { isIP } from "node:net";
import type { AddressSet } from "./address-set.js";
import type { Exchange } from "./exchange.js";
import { peerAddress, proxiedAddress } from "./peer-address.js";

/** Whose word counts for who asks and where the service is. */
export interface Proxies {
  readonly trusted: AddressSet;
  /** Whether trusted ones tell the client's address by the PROXY protocol. */
  readonly speakProxyProtocol: boolean;
}

/** A request as whoever sent it to the first proxy sees it. */
export interface Forwarded {
  /** Address of the client; empty where its connection is gone. */
  readonly client: string;
  /** Whether the request itself came from a trusted proxy, so that what it says of host, scheme and prefix counts. */
  readonly isTrusted: boolean;
}

/** Entries of `X-Forwarded-For` that are looked at, from the last. */
const MAX_HOPS = 32;

/**
 * Who sent a request. What a proxy says counts where the proxy is trusted: the last address that is not one's is the
 * client's, as everything before it may be made up.
 */
export function forwardedOf(exchange: Exchange, { trusted, speakProxyProtocol }: Proxies): Forwarded {
  if (exchange.over) return { client: "", isTrusted: false };
  const peer = peerAddress(exchange.res);
  if (trusted.isEmpty || !trusted.has(peer)) return { client: peer, isTrusted: false };
  // A proxy that speaks it passes headers on as they are: then they are those of whom it names.
  const sender = (speakProxyProtocol ? proxiedAddress(exchange.res) : undefined) ?? peer;
  if (sender !== peer && !trusted.has(sender)) return { client: sender, isTrusted: false };
  const list = exchange.listHeader("x-forwarded-for");
  return { client: list === undefined ? sender : lastUntrusted(list, sender, trusted), isTrusted: true };
}

/**
 * The client by `X-Forwarded-For`: from its end to the first address that is no trusted proxy's.
 * @param sender Trusted; the answer where the list says nothing that can be used.
 */
export function lastUntrusted(list: string, sender: string, trusted: AddressSet): string {
  let client = sender;
  let end = list.length;
  for (let hops = 0; hops < MAX_HOPS && end > 0; hops++) {
    const comma = list.lastIndexOf(",", end - 1);
    const address = addressOf(list.slice(comma + 1, end).trim());
    // What a proxy that is trusted could not name, or hides (`unknown`): whoever is before it is hearsay.
    if (address === undefined) return client;
    client = address;
    if (!trusted.has(address)) return client;
    end = comma;
  }
  return client;
}

const WITH_PORT = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/;

/** An address of a list, without the port and the brackets that some write; undefined where it is none. */
function addressOf(entry: string): string | undefined {
  const match = WITH_PORT.exec(entry);
  const address = match?.[1] ?? match?.[2] ?? entry;
  return isIP(address) === 0 || address.length > 45 ? undefined : address;
}
