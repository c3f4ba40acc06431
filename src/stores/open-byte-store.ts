import { ZpublishError } from "../errors.js";
import type { ByteStore } from "./byte-store.js";
import { createHttpStore } from "./http/http-store.js";
import { mergeRanges } from "./merge-ranges.js";
import { createS3Store } from "./s3/s3-store.js";
import { encodeKey } from "./s3/sign-v4.js";
import { type HeaderValue, type StoreSettings, settingsFor, withSlash } from "./store-settings.js";

/**
 * Opens the store whose keys begin below a URL, `https://…` or `s3://…`. It makes no request.
 * @param location URL of a directory; a slash at its end may be missing.
 * @throws ZpublishError `invalid-config` for URLs with credentials or queries, for other schemes, and for variables that are not set.
 */
export function openByteStore(location: string, stores: readonly StoreSettings[]): ByteStore {
  const settings = settingsFor(location, stores);
  const url = parseUrl(withSlash(location));
  const headers = headersOf(settings);
  if (url.protocol === "s3:") return mergeRanges(createS3Store(withSlash(location), settings, headers));
  const areMissing = settings?.missing === "404+403" ? [404, 410, 403] : [404, 410];
  const isPublic = settings?.redirect === true && Object.keys(settings.headers ?? {}).length === 0;
  const http = createHttpStore({
    store: settings?.name ?? url.origin,
    location: url.href,
    identity: url.href,
    urlOf: (key) => new URL(url.href + encodeKey(key)),
    headersOf: async (_method, _url, asked) => ({ ...headers, ...asked }),
    isMissing: ({ status }) => areMissing.includes(status),
  });
  const store = mergeRanges(http);
  return isPublic ? { ...store, urlFor: async (key) => url.href + encodeKey(key) } : store;
}

function parseUrl(location: string): URL {
  // Messages show no URL that may contain a secret.
  const expected = "expected an https://, http:// or s3:// URL";
  if (!URL.canParse(location)) throw invalid(`${expected}, received one that cannot be parsed`);
  const url = new URL(location);
  if (url.username !== "" || url.password !== "")
    throw invalid('expected a URL without user and password: name variables under "stores" instead');
  if (url.search !== "" || url.hash !== "")
    throw invalid('expected a URL without query and fragment: secrets belong under "stores"');
  if (!["http:", "https:", "s3:"].includes(url.protocol))
    throw invalid(`${expected}, received ${location.slice(0, 200)}`);
  return url;
}

function headersOf(settings: StoreSettings | undefined): Record<string, string> {
  const entries = Object.entries(settings?.headers ?? {});
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name.toLowerCase(),
      textOf(value, `stores.${settings?.name}.headers.${name}`),
    ]),
  );
}

function textOf(value: HeaderValue, place: string): string {
  const text = typeof value === "string" ? value : process.env[value.env];
  const variable = typeof value === "string" ? "" : `the variable ${value.env} to have `;
  if (text === undefined || text === "")
    throw invalid(`${place}: expected ${variable}a text, found it unset or empty`);
  // Also a line break at the end, as files of secrets have.
  if (!/^[\t\x20-\x7e\x80-\xff]+$/.test(text))
    throw invalid(
      `${place}: expected ${variable}a text that a header can have, found other characters in it`,
    );
  return text;
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-config", message);
}
