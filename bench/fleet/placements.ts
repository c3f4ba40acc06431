import { crc32 } from "node:zlib";
import {
  type HashRing,
  haproxyHash,
  haproxyRing,
  nginxHash,
  nginxRing,
  pointAfter,
  pointNearest,
} from "../../src/warm/instance-share.js";

/** A balancer's choice of an instance for each request. */
export interface Placement {
  /**
   * Chooses an instance that is up; at least one must be.
   * @param pathOf Returns the path of a number.
   * @param number Stands for the path of the request.
   */
  choose(pathOf: (number: number) => string, number: number, fleet: FleetState): number;
}

/** An instance on the balancer's list. */
export interface Member {
  /** `host:port`, as configured. */
  readonly name: string;
  /** Its place in {@link FleetState}. */
  readonly instance: number;
}

/** What a balancer knows of instances, by their place. */
export interface FleetState {
  /** 1 if the instance is listed and the balancer's checks succeed, else 0. */
  readonly isUp: Uint8Array;
  upInAll: number;
  /** Requests under way. */
  readonly underWay: Int32Array;
  underWayInAll: number;
}

/** Makes the placement of a list of instances. */
export type MakePlacement = (members: readonly Member[]) => Placement;

/** Weight of each server in `haproxy.cfg`. */
const HAPROXY_WEIGHT = 100;
/** Attempts of nginx after which `hash` takes the next server in turn. */
const NGINX_TRIES = 20;

/** How requests are spread, by the name in the tables. */
export const PLACEMENTS = {
  "in turn": inTurn,
  modulo,
  consistent: (members) => onRing(nginxRing(members.map(({ name }) => name)), members, nginxHash, pointAfter),
  "consistent, HAProxy": (members) => onRing(haproxyRingOf(members), members, haproxyHash, pointNearest),
  "bounded, 150 %": (members) => bounded(members, 1.5),
  "bounded, 125 %": (members) => bounded(members, 1.25),
} as const satisfies Readonly<Record<string, MakePlacement>>;

/** A name in {@link PLACEMENTS}. */
export type PlacementName = keyof typeof PLACEMENTS;

/** Takes each instance in turn, whatever the path is. */
function inTurn(members: readonly Member[]): Placement {
  let next = 0;
  return {
    choose(_pathOf, _number, { isUp }) {
      for (;;) {
        next = (next + 1) % members.length;
        const { instance } = members[next]!;
        if (isUp[instance] === 1) return instance;
      }
    },
  };
}

/** Takes the remainder of a hash, as nginx's `hash $uri`, and of other hashes while that instance is away. */
function modulo(members: readonly Member[]): Placement {
  const turn = inTurn(members);
  const at = (hash: number) => members[hash % members.length]!.instance;
  const hashOf = (path: string, attempt: number) =>
    (crc32(attempt === 0 ? path : `${attempt}${path}`) >>> 16) & 0x7fff;
  const hashes = remembered((path) => hashOf(path, 0));
  return {
    choose(pathOf, number, fleet) {
      let hash = hashes(pathOf, number);
      if (fleet.isUp[at(hash)] === 1) return at(hash);
      const path = pathOf(number);
      for (let attempt = 1; attempt <= NGINX_TRIES; attempt++) {
        hash += hashOf(path, attempt);
        if (fleet.isUp[at(hash)] === 1) return at(hash);
      }
      return turn.choose(pathOf, number, fleet);
    },
  };
}

/** Takes the instance of the point that is found, or of the next point whose instance is up. */
function onRing(
  ring: HashRing,
  members: readonly Member[],
  hash: (path: string) => number,
  find: (ring: HashRing, hash: number) => number,
): Placement {
  const instances = instancesOf(ring, members);
  const first = remembered((path) => find(ring, hash(path)));
  return {
    choose(pathOf, number, { isUp }) {
      let point = first(pathOf, number);
      while (isUp[instances[point]!] === 0) point = (point + 1) % instances.length;
      return instances[point]!;
    },
  };
}

/**
 * Bounds the load as HAProxy's `hash-balance-factor`: an instance takes at most `factor` times its share of the requests under
 * way, and others go to the next point.
 */
function bounded(members: readonly Member[], factor: number): Placement {
  const ring = haproxyRingOf(members);
  const { servers } = ring;
  const instances = instancesOf(ring, members);
  const first = remembered((path) => pointNearest(ring, haproxyHash(path)));
  return {
    choose(pathOf, number, { isUp, upInAll, underWay, underWayInAll }) {
      const slots = Math.ceil((underWayInAll + 1) * factor);
      /** Deals the slots out evenly, and those that are left over by the order of the list. */
      const slotsOf = (server: number) => {
        const place = server % upInAll;
        return Math.max(
          1,
          Math.floor(((place + 1) * slots) / upInAll) - Math.floor((place * slots) / upInAll),
        );
      };
      const start = first(pathOf, number);
      for (let i = 0, point = start; i < servers.length; i++, point = (point + 1) % servers.length) {
        const instance = instances[point]!;
        if (isUp[instance] === 1 && underWay[instance]! < slotsOf(servers[point]!)) return instance;
      }
      throw new Error("expected an instance with room, since there are more slots than requests");
    },
  };
}

function haproxyRingOf(members: readonly Member[]): HashRing {
  return haproxyRing(
    members.map(({ instance }) => instance + 1),
    HAPROXY_WEIGHT,
  );
}

function instancesOf({ servers }: HashRing, members: readonly Member[]): Uint16Array {
  return servers.map((server) => members[server]!.instance);
}

/** Remembers what was computed of each path. */
function remembered(
  compute: (path: string) => number,
): (pathOf: (number: number) => string, number: number) => number {
  const known: number[] = [];
  return (pathOf, number) => {
    known[number] ??= compute(pathOf(number));
    return known[number];
  };
}
