import { Writable } from "node:stream";
import { pino } from "pino";
import type { Test } from "tap";
import type { HttpApp } from "../../../src/http/handle-request.js";
import { loadUws } from "../../../src/http/listening/uws-listener.js";
import type { Body, BodyReply, Reply, RouteRequest } from "../../../src/http/reply.js";
import type { Route } from "../../../src/http/router.js";
import { createHttpServer, type HttpServerOptions } from "../../../src/http/server.js";
import type { Log } from "../../../src/observe/log.js";

/** Whether servers of this process are served by `node:http`: `src/http/README.md` lists what differs. */
export const isNodeHttp =
  process.env.ZPUBLISH_HTTP === "node" ||
  !(await loadUws().then(
    () => true,
    () => false,
  ));

/** Why tests of several processes are skipped, or false if processes can share a port here. */
export const cannotSharePort =
  isNodeHttp && process.versions.node.startsWith("20.") && "skipped, because it takes Node.js 22.12";

/** A line of the log. */
export interface LogLine {
  readonly level: number;
  readonly msg: string;
  readonly id?: string;
  readonly code?: string;
  readonly path?: string;
}

/** A server of routes, and what it logged so far. */
export type TestServer = Awaited<ReturnType<typeof serveRoutes>>;

/** A log that keeps its lines. */
export function createTestLog(): { readonly log: Log; readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(JSON.parse(String(chunk)) as LogLine);
      done();
    },
  });
  return { log: pino({ level: "debug", base: null }, stream), lines };
}

/** A server of these routes on a free port of a host, 127.0.0.1 by default, closed at the test's end. */
export async function serveRoutes(
  test: Pick<Test, "teardown">,
  routes: readonly Route[],
  options: Partial<HttpServerOptions & HttpApp & { readonly host: string }> = {},
) {
  const { log, lines } = createTestLog();
  const server = createHttpServer({ log, ...options });
  server.use({ routes, ...options });
  const { port, url } = await server.listen(options.host ?? "127.0.0.1", 0);
  test.teardown(() => server.close(0));
  return { server, port, url, lines };
}

/** A route with what tests do not care about filled in. */
export function routeOf(
  path: string,
  handler: (request: RouteRequest) => Reply | Promise<Reply>,
  priority: Route["priority"] = "page",
): Route {
  return { path, handler, priority, operation: { summary: path, contentType: "application/json" } };
}

/** A body that stays where it is. */
export function bodyOf(bytes: Uint8Array, headers: Body["headers"] = []): Body {
  return { byteLength: bytes.byteLength, headers, read: (offset) => bytes.subarray(offset) };
}

/** A reply whose body costs nothing. */
export function bodyReplyOf(bytes: Uint8Array, etag: string, more: Partial<BodyReply> = {}): BodyReply {
  return {
    kind: "body",
    contentType: "application/octet-stream",
    etag,
    async open(request) {
      await request.reserve(bytes.byteLength);
      return bodyOf(bytes);
    },
    ...more,
  };
}
