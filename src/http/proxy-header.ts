import { isIP } from "node:net";
import { addressText, shortForm } from "./ip-address.js";

/** What stands at the beginning of a connection. */
export type ProxyHeader =
  /** More has to come before it can be told. */
  | { readonly kind: "incomplete" }
  /** No such header: what there is belongs to the client. */
  | { readonly kind: "none" }
  /** One that is no good. */
  | { readonly kind: "broken" }
  /** @property address Of the client, as text; undefined where the proxy speaks for itself, as in health checks. */
  | { readonly kind: "header"; readonly byteLength: number; readonly address: string | undefined };

const SIGNATURE = Buffer.from("\r\n\r\n\0\r\nQUIT\n", "latin1");
const V1_PREFIX = Buffer.from("PROXY ", "latin1");
/** By the specification. */
const V1_MAX_BYTES = 107;
/** Behind the addresses of version 2 are fields, of a few hundred bytes at most, that nobody here asks for. */
const V2_MAX_BYTES = 4_096;
const V2_FIXED_BYTES = 16;

const INCOMPLETE: ProxyHeader = { kind: "incomplete" };
const NONE: ProxyHeader = { kind: "none" };
const BROKEN: ProxyHeader = { kind: "broken" };

/**
 * Looks for a header of the PROXY protocol, version 1 or 2 (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt).
 * @param bytes All that has come so far.
 */
export function parseProxyHeader(bytes: Buffer): ProxyHeader {
  if (begins(bytes, SIGNATURE)) return parseV2(bytes);
  if (begins(bytes, V1_PREFIX)) return parseV1(bytes);
  return NONE;
}

/** Whether this is the beginning, or the beginning of the beginning. */
function begins(bytes: Buffer, prefix: Buffer): boolean {
  const length = Math.min(bytes.length, prefix.length);
  return bytes.compare(prefix, 0, length, 0, length) === 0;
}

function parseV1(bytes: Buffer): ProxyHeader {
  const end = bytes.subarray(0, V1_MAX_BYTES).indexOf("\r\n");
  if (end < 0) return bytes.length < V1_MAX_BYTES ? INCOMPLETE : BROKEN;
  const [, family, address = ""] = bytes.toString("latin1", 0, end).split(" ");
  const byteLength = end + 2;
  if (family === "UNKNOWN") return { kind: "header", byteLength, address: undefined };
  const version = isIP(address);
  const isGood = (family === "TCP4" && version === 4) || (family === "TCP6" && version === 6);
  return isGood ? { kind: "header", byteLength, address: shortForm(address) } : BROKEN;
}

function parseV2(bytes: Buffer): ProxyHeader {
  if (bytes.length < V2_FIXED_BYTES) return INCOMPLETE;
  const [versionAndCommand = 0, familyAndTransport = 0] = bytes.subarray(SIGNATURE.length);
  const command = versionAndCommand & 0x0f;
  const byteLength = V2_FIXED_BYTES + bytes.readUInt16BE(14);
  if (versionAndCommand >>> 4 !== 2 || command > 1 || byteLength > V2_MAX_BYTES) return BROKEN;
  if (bytes.length < byteLength) return INCOMPLETE;
  const family = familyAndTransport >>> 4;
  const addresses = bytes.subarray(V2_FIXED_BYTES, byteLength);
  if (command === 0) return { kind: "header", byteLength, address: undefined };
  if (family === 1 && addresses.length >= 12) {
    return { kind: "header", byteLength, address: addressText(addresses.subarray(0, 4)) };
  }
  if (family === 2 && addresses.length >= 36) {
    return { kind: "header", byteLength, address: addressText(addresses.subarray(0, 16)) };
  }
  // Of another family, or of none: the specification has it that the connection is taken as it is.
  return family === 1 || family === 2 ? BROKEN : { kind: "header", byteLength, address: undefined };
}
