import {
  type HashRing,
  haproxyHash,
  haproxyRing,
  nginxHash,
  nginxRing,
  pointAfter,
  pointNearest,
} from "./hash-ring.js";

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
