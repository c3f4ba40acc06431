import { ZpublishError } from "../../errors.js";
import { headerField } from "./header-field.js";

/** Methods that are answered, as `Allow` lists them. */
export const ALLOWED_METHODS = "GET, HEAD, OPTIONS";
const ALLOWED_HEADERS = "Range, If-None-Match, If-Match, Authorization";
const EXPOSED_HEADERS =
  "Content-Range, Content-Length, Content-Encoding, ETag, Accept-Ranges, Link, Server-Timing, X-Request-Id";
const PREFLIGHT_MAX_AGE_SECONDS = 86_400;

/** Header lines that let pages of other origins read the answers. */
export interface Cors {
  /** Returns the lines of every answer to a request with this `Origin` header, each with its line break before it. */
  fields(origin: string | undefined): string;
  /** Lines of the answer to a preflight request, besides those of every answer. */
  readonly preflight: string;
  /** Whether answers depend on the request's origin, and `Vary` has to name it. */
  readonly variesByOrigin: boolean;
}

/**
 * Prepares the header lines, once per app.
 * @param corsOrigin `*`, one origin, several separated by commas (each is answered with itself), or empty if no other origin may read.
 * @throws ZpublishError `invalid-config`
 */
export function createCors(corsOrigin: string): Cors {
  const origins = corsOrigin
    .split(",")
    .map((origin) => origin.trim())
    .filter((origin) => origin !== "");
  for (const origin of origins) checkOrigin(origin, origins.length);
  const exposed =
    headerField("Access-Control-Expose-Headers", EXPOSED_HEADERS) +
    headerField("Cross-Origin-Resource-Policy", "cross-origin");
  const allowing = new Map(
    origins.map((origin) => [origin, headerField("Access-Control-Allow-Origin", origin) + exposed]),
  );
  const only = origins.length <= 1 ? (allowing.get(origins[0] ?? "") ?? exposed) : undefined;
  return {
    fields: (origin) => only ?? allowing.get(origin ?? "") ?? exposed,
    preflight:
      headerField("Access-Control-Allow-Methods", ALLOWED_METHODS) +
      headerField("Access-Control-Allow-Headers", ALLOWED_HEADERS) +
      headerField("Access-Control-Max-Age", String(PREFLIGHT_MAX_AGE_SECONDS)),
    variesByOrigin: origins.length > 0 && origins[0] !== "*",
  };
}

function checkOrigin(origin: string, count: number): void {
  const valid =
    origin === "*" ? count === 1 : origin === "null" || /^[a-z][a-z0-9+.-]*:\/\/[^/\s,]+$/i.test(origin);
  if (!valid) {
    throw new ZpublishError(
      "invalid-config",
      `CORS origin: expected '*' or origins such as 'https://example.org' separated by commas, received '${origin}'`,
    );
  }
}
