import type { HttpResponse } from "uWebSockets.js";
import { randomInt } from "node:crypto";
import { addressText } from "./ip-address.js";

/** Who is behind a connection that this process has passed on to itself. */
export interface PassedOn {
  /** Who connected. */
  readonly peer: string;
  /** Whom that one speaks for, by the PROXY protocol; undefined: itself. */
  readonly proxied: string | undefined;
}

interface Entry {
  readonly who: PassedOn;
  /** Whether its connection has come. */
  isTaken: boolean;
}

/** By the address of this machine's own that the connection was passed on from. */
const passedOn = new Map<string, Entry>();

function entryOf(res: HttpResponse): Entry | undefined {
  return passedOn.get(addressText(new Uint8Array(res.getRemoteAddress())));
}

/**
 * The address at the other end of a connection, as text: IPv4 in dots, also where it came through a socket for IPv6;
 * IPv6 in short form (RFC 5952). Empty where the connection is gone.
 */
export function peerAddress(res: HttpResponse): string {
  const address = addressText(new Uint8Array(res.getRemoteAddress()));
  return passedOn.get(address)?.who.peer ?? address;
}

/**
 * The client's address by the PROXY protocol, written as {@link peerAddress} is; undefined where its connection began with no
 * such header, or with one that names nobody (as those of health checks). The first of a connection: uWebSockets.js's own takes
 * any later one, too, which is the client's. To be believed only where {@link peerAddress} is a trusted proxy's.
 */
export function proxiedAddress(res: HttpResponse): string | undefined {
  return entryOf(res)?.who.proxied;
}

/**
 * To be asked once of each connection that comes: whether it is one that was announced and has not come yet. Any other is
 * somebody's on this machine who speaks past the front, or for one who came through it.
 */
export function takePassedOn(res: HttpResponse): boolean {
  const entry = entryOf(res);
  if (entry === undefined || entry.isTaken) return false;
  entry.isTaken = true;
  return true;
}

/** 127.1.0.0 to 127.255.255.254: nobody else's, as all of 127.0.0.0/8 is this machine, which itself uses the first few. */
const FIRST = 0x7f010000;
const LAST = 0x7ffffffe;

/**
 * Announces a connection that is about to be passed on.
 * @returns The address to pass it on from, which tells it apart: one that nobody can foresee, as any user of this machine may
 * connect from it. To be given back with {@link forgetPassedOn}.
 */
export function announcePassedOn(who: PassedOn): string {
  let address: string;
  do {
    const bits = randomInt(FIRST, LAST + 1);
    address = `127.${(bits >>> 16) & 255}.${(bits >>> 8) & 255}.${bits & 255}`;
  } while (passedOn.has(address));
  passedOn.set(address, { who, isTaken: false });
  return address;
}

/** To be called when nothing of the connection can be waiting to be read any more: until then its requests are its client's. */
export function forgetPassedOn(address: string): void {
  passedOn.delete(address);
}
