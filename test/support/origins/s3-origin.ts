import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { IncomingMessage } from "node:http";
import { isBuiltin, register } from "node:module";
import { encodeKey } from "../../../src/stores/aws-requests.js";
import type { Teardown } from "../write-store.js";

/** A server of S3 with its buckets in memory. */
export type S3Origin = Awaited<ReturnType<typeof startS3Origin>>;

/** Stands for `node:sqlite`, in which fauxqs would keep buckets if it were asked to. Node.js 20 has no such module. */
const WITHOUT_SQLITE = `export async function resolve(specifier, context, next) {
  if (specifier !== "node:sqlite") return next(specifier, context);
  return { url: "data:text/javascript,export class DatabaseSync {}", shortCircuit: true };
}`;

if (!isBuiltin("node:sqlite")) register(`data:text/javascript,${encodeURIComponent(WITHOUT_SQLITE)}`);

/**
 * Starts fauxqs in this process. It checks no signatures, and lets everyone read. Listings of more than one page may have names
 * twice or not at all, unless all keys are of lower-case letters and digits: it sorts by language, and goes on by code unit.
 */
export async function startS3Origin(t: Teardown) {
  const { startFauxqs } = await import("fauxqs");
  const server = await startFauxqs({ port: 0, logger: false });
  const endpoint = `http://127.0.0.1:${server.port}`;
  /** Requests so far, without their queries: `GET bucket/air.zarr/.zmetadata`. */
  const requests: string[] = [];
  const onRequest = (message: unknown): void => {
    const { method, url = "", socket } = (message as { readonly request: IncomingMessage }).request;
    if (socket.localPort !== server.port) return;
    requests.push(`${method} ${decodeURIComponent(url.slice(1).replace(/\?.*/s, ""))}`);
  };
  subscribe("http.server.request.start", onRequest);
  let stopped: Promise<void> | undefined;
  function stop(): Promise<void> {
    unsubscribe("http.server.request.start", onRequest);
    stopped ??= server.stop();
    return stopped;
  }
  t.teardown(stop);

  async function send(method: string, bucket: string, key: string, body?: Uint8Array | string) {
    const response = await fetch(`${endpoint}/${bucket}/${encodeKey(key)}`, {
      method,
      ...(body === undefined ? {} : { body }),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${bucket}/${key} was answered ${response.status}: ${text}`);
  }
  return {
    endpoint,
    requests,
    async put(bucket: string, key: string, bytes: Uint8Array | string): Promise<void> {
      server.setup({ buckets: [bucket] });
      await send("PUT", bucket, key, bytes);
    },
    remove: (bucket: string, key: string) => send("DELETE", bucket, key),
    stop,
  };
}
