import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { errorToData } from "../../../src/errors.js";
import type { DocumentReply, Reply, RouteRequest } from "../../../src/http/reply.js";
import { createRouter, type Route, type Router } from "../../../src/http/router.js";

/** A route table that answers without a socket. */
export interface FakeService {
  /** Returns the reply to a GET. @throws The error of the handler, or an Error if no route has the path. */
  get(path: string, headers?: Readonly<Record<string, string>>): Promise<Reply>;
  /** Returns the text of a document. */
  text(path: string, headers?: Readonly<Record<string, string>>): Promise<string>;
}

export function fakeService(routes: readonly Route[]): FakeService {
  const router = createRouter(routes);
  return {
    get: (path, headers = {}) => ask(router, path, headers),
    async text(path, headers = {}) {
      const reply = await ask(router, path, headers);
      return Buffer.from((reply as DocumentReply).document.bytes).toString();
    },
  };
}

async function ask(
  router: Router,
  url: string,
  headers: Readonly<Record<string, string | undefined>>,
): Promise<Reply> {
  const [rawPath = "", query = ""] = url.split("?", 2);
  const match = router.match(rawPath);
  if (match === undefined) throw new Error(`no route for ${rawPath}`);
  const request: RouteRequest = {
    method: "GET",
    params: match.params,
    rawPath,
    query,
    serviceUrl: `http://${headers.host ?? "localhost"}`,
    header: (name) => headers[name],
    signal: new AbortController().signal,
    reserve: () => undefined,
  };
  return match.route.handler(request);
}

/** Serves a route table on a port, below a root path, with only as much HTTP as a browser or a client's listing needs. */
export async function listen(
  routes: readonly Route[],
  rootPath = "",
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const router = createRouter(routes);
  const server = createServer(async (request, response) => {
    const url = request.url ?? "/";
    try {
      if (!url.startsWith(rootPath)) throw new Error("outside the root path");
      const reply = await ask(router, url.slice(rootPath.length), request.headers as Record<string, string>);
      if (reply.kind === "redirect") {
        response.writeHead(301, { Location: `${url}/` }).end();
      } else if (reply.kind === "document") {
        const { contentType, bytes } = reply.document;
        const headers = { "Content-Type": contentType, "Content-Length": bytes.byteLength };
        response.writeHead(200, headers).end(request.method === "HEAD" ? undefined : bytes);
      } else response.writeHead(404).end();
    } catch (error) {
      response.writeHead(404, { "Content-Type": "application/json" });
      response.end(JSON.stringify({ detail: errorToData(error).message }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${rootPath}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
