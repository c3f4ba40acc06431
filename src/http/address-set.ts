import { BlockList, isIP } from "node:net";
import { ZpublishError } from "../errors.js";

/** Addresses and networks, as a set. */
export interface AddressSet {
  readonly isEmpty: boolean;
  /** @param address As text; anything else is not in it. IPv4 within IPv6 (`::ffff:192.0.2.1`) is IPv4. */
  has(address: string): boolean;
}

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i;

/**
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
