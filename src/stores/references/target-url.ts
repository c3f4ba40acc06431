import { createHash } from "node:crypto";
import { ZpublishError } from "../../errors.js";

const SCHEME = /^([a-z][a-z0-9+.-]*):\/\/([^/?#]*)(.*)$/is;

/**
 * Resolves the URL of a reference: a relative one against the folder of the references, and `.` and `..` in its path. URLs of web
 * servers are percent-encoded, as a client would send them; others, such as `s3://bucket/a b`, are not.
 * @param folder URL with a slash at the end.
 * @throws ZpublishError `unsupported` for URLs with credentials, for URLs that lead above the root, and for chains of fsspec
 * (`simplecache::…`).
 */
export function resolveTargetUrl(url: string, folder: string): string {
  const absolute = SCHEME.test(url) ? url : below(url, folder);
  const [, scheme = "", authority = "", rest = ""] = SCHEME.exec(absolute) ?? [];
  if (scheme === "" || absolute.includes("::")) throw refused(url, "a URL of one object");
  if (authority.includes("@")) throw refused(url, "a URL without credentials");
  const kind = scheme.toLowerCase();
  return kind === "http" || kind === "https"
    ? webUrl(url, absolute)
    : `${kind}://${authority}${resolvePath(url, rest, kind === "file")}`;
}

/** Returns a URL for messages: without query, fragment and credentials. */
export function shownUrl(url: string): string {
  const shown = url.replace(/[?#].*$/s, "").replace(/\/\/[^/]*@/, "//");
  return shown.length <= 200 ? shown : `${shown.slice(0, 197)}...`;
}

/** Returns a name that differs between URLs, and contains no query: that may be a credential. */
export function targetName(url: string): string {
  const shown = url.replace(/[?#].*$/s, "");
  return shown === url ? url : `${shown}?${createHash("sha256").update(url).digest("hex").slice(0, 16)}`;
}

function below(url: string, folder: string): string {
  if (!url.startsWith("/")) return `${folder}${url}`;
  // An absolute path is one of the same machine as the references, or of the same bucket or server.
  const [, scheme = "", authority = ""] = SCHEME.exec(folder) ?? [];
  return `${scheme}://${authority}${url}`;
}

function webUrl(url: string, absolute: string): string {
  if (!URL.canParse(absolute)) throw refused(url, "a valid URL");
  const parsed = new URL(absolute);
  parsed.hash = "";
  // Servers may decode a segment that still has dots or slashes in it, and leave the folder.
  const segments = parsed.pathname.split("/").map((segment) => decode(segment));
  if (segments.some((segment) => segment === undefined || /[/\\]|^\.{1,2}$/.test(segment))) {
    throw refused(url, "a URL without encoded slashes or dots");
  }
  return parsed.href;
}

function decode(segment: string): string | undefined {
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

/** @param isFile Whether several slashes are one; in keys of objects they are not. */
function resolvePath(url: string, path: string, isFile: boolean): string {
  const resolved: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "." || (isFile && segment === "")) continue;
    if (segment !== "..") resolved.push(segment);
    else if (resolved.pop() === undefined) throw refused(url, "a URL that stays below its root");
  }
  return `/${resolved.join("/")}`;
}

function refused(url: string, expected: string): ZpublishError {
  return new ZpublishError("unsupported", `a reference leads to '${shownUrl(url)}', expected ${expected}`);
}
