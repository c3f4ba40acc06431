import { ZpublishError } from "../../errors.js";
import { createDocument } from "../create-document.js";
import { parseQuery, readInteger } from "../query.js";
import type { Reply, RouteRequest } from "../reply.js";
import type { Route } from "../router.js";
import { bearerOf, COOKIE } from "./authorize.js";
import type { ReaderCredentials } from "./credentials.js";

/** Seconds for which a ticket is valid unless another number is asked for; all numbers from the least to the greatest may be. */
const SECONDS = { byDefault: 86_400, least: 60, greatest: 366 * 86_400 };

/**
 * Creates the route that gives a client with a token tickets for requests without headers: a cookie for its browser, and a prefix of paths for
 * links and programs.
 */
export function sessionRoute(credentials: ReaderCredentials): Route {
  return {
    path: "/session",
    priority: "page",
    methods: ["POST"],
    maxBodyBytes: 1_024,
    operation: {
      summary:
        "Signs a cookie, and a prefix of paths, that are valid in place of the token in the header `Authorization`",
      contentType: "application/json",
      schema: {
        type: "object",
        properties: {
          prefix: { type: "string", description: "URL of the service, for requests without headers" },
          expires: { type: "string", format: "date-time" },
        },
      },
      query: {
        seconds: {
          description: `Time until they expire, unless the token does before; default ${SECONDS.byDefault}`,
          schema: { type: "integer", minimum: SECONDS.least, maximum: SECONDS.greatest },
        },
        dataset: {
          description:
            "Pattern of the datasets that they are for; may be repeated. Default: all that the token is for",
          schema: { type: "string" },
        },
      },
    },
    handler: (request) => openSession(request, credentials),
  };
}

async function openSession(request: RouteRequest, credentials: ReaderCredentials): Promise<Reply> {
  // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
  const serviceUrl = request.serviceUrl.replace(/\/s\/[^/]+\.[^/]+$/, "");
  const asked = parseQuery(request.query, { once: ["seconds"], repeated: ["dataset"] });
  const bearer = bearerOf(request);
  const grant = bearer === undefined ? undefined : await credentials.find(bearer);
  if (grant === undefined)
    throw new ZpublishError("unauthorized", "Expected a token in the header Authorization, received none", {
      details: { wasGiven: bearer !== undefined },
    });
  const [text = String(SECONDS.byDefault)] = asked.get("seconds") ?? [];
  const seconds = readInteger("seconds", text, SECONDS.least, SECONDS.greatest);
  const ends = Math.min(grant.expiresMs, Date.now() + seconds * 1_000);
  const expiresMs = ends - (ends % 1_000);
  const ticket = credentials.signTicket(grant, expiresMs, asked.get("dataset") ?? []);
  const { protocol, pathname } = new URL(serviceUrl);
  const cookie = [
    `${COOKIE}=${ticket}`,
    `Path=${pathname}`,
    `Max-Age=${Math.floor((expiresMs - Date.now()) / 1_000)}`,
    "HttpOnly",
    "SameSite=Lax",
    ...(protocol === "https:" ? ["Secure"] : []),
  ];
  const said = { prefix: `${serviceUrl}/s/${ticket}/`, expires: new Date(expiresMs).toISOString() };
  return {
    kind: "document",
    document: createDocument(JSON.stringify(said), "application/json"),
    cacheControl: "no-store",
    headers: [["Set-Cookie", cookie.join("; ")]],
  };
}
