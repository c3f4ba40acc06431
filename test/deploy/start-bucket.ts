import { isBuiltin, register } from "node:module";
import type { Teardown } from "../support/write-store.js";

/** In the place of `node:sqlite`, which fauxqs imports to keep buckets on a disk, and Node.js 20 does not have. */
const WITHOUT_SQLITE = `
export async function resolve(specifier, context, next) {
  if (specifier !== "node:sqlite") return next(specifier, context);
  return { url: "data:text/javascript,export class DatabaseSync {}", shortCircuit: true };
}`;

/** An S3 server on this machine with one bucket, named `bucket`. It takes any credentials. */
export interface Bucket {
  /** Its URL. */
  readonly endpoint: string;
  /** Requests since the start, `PUT` left out: `GET air.zarr/.zmetadata`. */
  readonly requests: readonly string[];
  put(key: string, bytes: Uint8Array): Promise<void>;
}

/** Starts a server with an empty bucket, which ends with the test. */
export async function startBucket(t: Teardown): Promise<Bucket> {
  if (!isBuiltin("node:sqlite")) register(`data:text/javascript,${encodeURIComponent(WITHOUT_SQLITE)}`);
  const { buildApp } = await import("fauxqs");
  const app = buildApp({ logger: false });
  const requests: string[] = [];
  app.addHook("onRequest", async ({ method, url }) => {
    const [path = ""] = url.split("?");
    if (method !== "PUT") requests.push(`${method} ${decodeURIComponent(path.replace(/^\/bucket\/?/, ""))}`);
  });
  const endpoint = await app.listen({ host: "127.0.0.1", port: 0 });
  t.teardown(() => app.close());

  async function put(key: string, body: Uint8Array<ArrayBuffer> | undefined): Promise<void> {
    const { status } = await fetch(`${endpoint}/bucket${key}`, { method: "PUT", body: body ?? null });
    if (status !== 200) throw new Error(`PUT ${key}: expected 200, received ${status}`);
  }

  await put("", undefined);
  return { endpoint, requests, put: (key, bytes) => put(`/${key}`, Uint8Array.from(bytes)) };
}
