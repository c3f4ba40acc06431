/** Of an IPv4 address within IPv6 (RFC 4291 §2.5.5.2). */
const MAPPED = "00000000000000000000ffff";

/**
 * An address of 4 or 16 bytes as text: IPv4 in dots, also where it is within IPv6, which is in short form (RFC 5952). Empty
 * where there are no bytes.
 */
export function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  if (bytes.length !== 16) return "";
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, 16).toString("hex");
  if (hex.startsWith(MAPPED)) return bytes.subarray(12).join(".");
  return shortForm(hex.match(/..../g)?.join(":") ?? "");
}

/** @param address Any form of an address. The zone of one that holds on one link only (`%eth0`) is left out. */
export function shortForm(address: string): string {
  if (!address.includes(":")) return address;
  const [plain] = address.split("%", 1);
  const short = new URL(`http://[${plain}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]+):([0-9a-f]+)$/.exec(short);
  if (mapped === null) return short;
  const [high = 0, low = 0] = mapped.slice(1).map((part) => Number.parseInt(part, 16));
  return `${high >>> 8}.${high & 255}.${low >>> 8}.${low & 255}`;
}
