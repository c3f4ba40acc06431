import { BlockList, isIP } from "node:net";
import { ZpublishError } from "../../errors.js";

/** A set of IP addresses and networks. */
export interface AddressSet {
  readonly isEmpty: boolean;
  /** Whether an address is in the set; text that is none is not. IPv4 within IPv6 (`::ffff:192.0.2.1`) counts as IPv4. */
  has(address: string): boolean;
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
 * Creates a set.
 * @param networks Addresses, or networks in CIDR notation.
 * @throws ZpublishError `invalid-config`
 */
export function createAddressSet(networks: readonly string[]): AddressSet {
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
    has(address) {
      const plain = MAPPED.exec(address)?.[1] ?? address;
      const family = familyOf(plain);
      return family !== undefined && list.check(plain, family);
    },
  };
}

function familyOf(address: string): "ipv4" | "ipv6" | undefined {
  const version = isIP(address);
  return version === 0 ? undefined : version === 4 ? "ipv4" : "ipv6";
}
