import type { Subject } from "./subject.js";

/**
 * A server that the user runs: it has to serve the benchmark's stores under their ids at `/datasets/{id}/zarr/`.
 * @throws Error for what is no http URL.
 */
export function createPeer(url: string): Subject {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "http:") throw new Error(`--peer: expected an http:// URL, received ${url}`);
  const baseUrl = `${parsed.origin}${parsed.pathname}`.replace(/\/+$/, "");
  return {
    name: `peer ${baseUrl}`,
    isRestartable: false,
    hasChunkCache: false,
    start: async () => ({ baseUrl, pid: undefined, stop: async () => {} }),
  };
}
