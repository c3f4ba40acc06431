import type { DocumentReply, Reply, RouteRequest } from "../../../src/http/reply.js";
import { createRouter, type Route, type Router } from "../../../src/http/router.js";

/** A route table that answers without a socket. */
export type FakeService = ReturnType<typeof fakeService>;

export function fakeService(routes: readonly Route[]) {
  const router = createRouter(routes);
  return {
    /** Returns the reply to a GET. @throws The error of the handler, or an Error if no route has the path. */
    get: (path: string, headers: Readonly<Record<string, string>> = {}) => ask(router, path, headers),
    async text(path: string, headers: Readonly<Record<string, string>> = {}): Promise<string> {
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
    body: async () => new Uint8Array(),
  };
  return match.route.handler(request);
}
