import { crc32 } from "node:zlib";
import { firstNotLess } from "../collections/sorted-lists.js";

/** Points of servers on a circle of 2^32, ascending. Of equal points, the first server's counts. */
interface HashRing {
  readonly points: Uint32Array;
  /** Server of each point, by its place in the list. */
  readonly servers: Uint16Array;
}

/** Points per server with weight 1. */
const NGINX_POINTS = 160;
/** Points per server and unit of weight, and distance between the points' numbers of two servers. */
const HAPROXY_POINTS = 16;
const HAPROXY_RANGE = 4_096;

/** Hashes a path as nginx does for `hash … consistent`. */
function nginxHash(path: string): number {
  return crc32(path);
}

/** Makes the ring of nginx: each point is the hash of the name and of the point before it. @param names `host:port` as configured. */
function nginxRing(names: readonly string[]): HashRing {
  const previous = Buffer.alloc(4);
  return ringOf(names.length, NGINX_POINTS, (server) => {
    // A name without a port has an empty one.
    const [host, port = ""] = names[server]!.split(/:(?=\d*$)/);
    const base = crc32(`${host}\0${port}`);
    previous.fill(0);
    return () => {
      const point = crc32(previous, base);
      previous.writeUInt32LE(point, 0);
      return point;
    };
  });
}

/** Hashes a path as HAProxy does for `balance uri path-only` with `hash-type consistent sdbm avalanche`. */
function haproxyHash(path: string): number {
  let hash = 0;
  for (let i = 0; i < path.length; i++) hash = (path.charCodeAt(i) + (hash << 6) + (hash << 16) - hash) | 0;
  return avalanche(hash);
}

/** Makes the ring of HAProxy. @param ids Of the servers, as configured. */
function haproxyRing(ids: readonly number[], weight: number): HashRing {
  return ringOf(ids.length, HAPROXY_POINTS * weight, (server) => {
    let number = ids[server]! * HAPROXY_RANGE;
    return () => avalanche(number++);
  });
}

/** Finds the first point at or after a hash, going round. @returns Its place in the ring. */
function pointAfter({ points }: HashRing, hash: number): number {
  const place = firstNotLess(points, hash);
  return place === points.length ? 0 : place;
}

/** Finds the point next to a hash, on either side: HAProxy's choice. */
function pointNearest(ring: HashRing, hash: number): number {
  const { points, servers } = ring;
  const next = pointAfter(ring, hash);
  const previous = next === 0 ? points.length - 1 : next - 1;
  if (servers[next] === servers[previous]) return next;
  const before = (hash - points[previous]!) >>> 0;
  const after = (points[next]! - hash) >>> 0;
  return before <= after ? previous : next;
}

/** Sorts the points of all servers. @param pointsOf Makes a generator of the points of one server. */
function ringOf(count: number, perServer: number, pointsOf: (server: number) => () => number): HashRing {
  // Point and server in one number of 48 bits, so that one sort orders both.
  const packed = new Float64Array(count * perServer);
  for (let server = 0; server < count; server++) {
    const next = pointsOf(server);
    for (let i = 0; i < perServer; i++) packed[server * perServer + i] = next() * 2 ** 16 + server;
  }
  packed.sort();
  const points = new Uint32Array(packed.length);
  const servers = new Uint16Array(packed.length);
  for (const [i, each] of packed.entries()) {
    points[i] = Math.floor(each / 2 ** 16);
    servers[i] = each % 2 ** 16;
  }
  return { points, servers };
}

/** Mixes 32 bits so that each bit of the input changes half of the output: Bob Jenkins' function, with HAProxy's factor. */
function avalanche(value: number): number {
  let a = value | 0;
  a = (a + 0x7ed55d16 + (a << 12)) | 0;
  a = a ^ 0xc761c23c ^ (a >>> 19);
  a = (a + 0x165667b1 + (a << 5)) | 0;
  a = ((a + 0xd3a2646c) | 0) ^ (a << 9);
  a = (a + 0xfd7046c5 + (a << 3)) | 0;
  a = a ^ 0xb55a4f09 ^ (a >>> 16);
  return Math.imul(a, 3_221_225_473) >>> 0;
}

/** Tells if a balancer by path sends requests for a path to one instance. @param path Decoded, root path included, without a query. */
export type InstanceShare = (path: string) => boolean;

/** Weight of each server in `scripts/deploy/haproxy.cfg`. */
const HAPROXY_WEIGHT = 100;
const MAX_INSTANCES = 1_024;

/**
 * Creates the share of one instance. The balancers are those of `scripts/deploy/`: nginx hashes by the names of its servers,
 * HAProxy by their numbers.
 * @param instances Names of nginx's servers as configured, separated by commas; or the number of HAProxy's servers, whose ids are 1 to
 * that number.
 * @param instance One of the names, or its place among them from 1; or HAProxy's id.
 * @returns A text with the problem if the two do not fit.
 */
export function instanceShare(instances: string, instance: string): InstanceShare | string {
  const names = instances.split(",").map((name) => name.trim());
  const isCount = /^\d+$/.test(instances);
  const count = isCount ? Number(instances) : names.length;
  if (count < 1 || count > MAX_INSTANCES)
    return `--instances: expected 1 to ${MAX_INSTANCES} instances, received ${count}`;
  if (!isCount && new Set(names).size < count)
    return `--instances: expected names that differ, received ${instances}`;
  if (names.includes(""))
    return `--instances: expected a number, or names with commas, received ${instances}`;
  const number = isCount || !names.includes(instance) ? numberOf(instance) : names.indexOf(instance) + 1;
  if (number < 1 || number > count) {
    const expected = isCount ? `1 to ${count}` : `one of ${instances}, or 1 to ${count}`;
    return `--instance: expected ${expected}, received ${instance}`;
  }
  return isCount ? shareOfHaproxy(count, number - 1) : shareOfNginx(names, number - 1);
}

function numberOf(text: string): number {
  return /^\d{1,5}$/.test(text) ? Number(text) : 0;
}

/** nginx hashes the decoded path, and takes the next point: `hash $uri consistent`. */
function shareOfNginx(names: readonly string[], server: number): InstanceShare {
  const ring: HashRing = nginxRing(names);
  return (path) => ring.servers[pointAfter(ring, nginxHash(path))] === server;
}

/** HAProxy hashes the path as the client wrote it, and takes the point that is nearest. */
function shareOfHaproxy(count: number, server: number): InstanceShare {
  const ids = Array.from({ length: count }, (_, index) => index + 1);
  const ring: HashRing = haproxyRing(ids, HAPROXY_WEIGHT);
  return (path) => ring.servers[pointNearest(ring, haproxyHash(encodePath(path)))] === server;
}

/** Percent-encodes a path as most clients do, who leave the punctuation of URLs as it is. */
function encodePath(path: string): string {
  return encodeURI(path).replaceAll("#", "%23").replaceAll("?", "%3F");
}
