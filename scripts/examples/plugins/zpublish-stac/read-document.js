import { readFile, stat } from "node:fs/promises";
import { ZpublishError } from "zpublish";
import { foundIn } from "./found-in-document.js";

/**
 * @import { Found } from "./found-in-document.js"
 */

/**
 * What was found in a document, and what tells that it is still the same. Whole documents would take much memory.
 * @typedef {object} KeptDocument
 * @property {Found} found
 * @property {string} [stamp] Size and time of a file.
 * @property {Record<string, string>} [conditions] Headers of a conditional request.
 */

const TIMEOUT_MS = 10_000;

/**
 * Reads a document, unless it is the same as before.
 * @param {string} url `file:` or `http(s):`
 * @param {KeptDocument | undefined} before
 * @param {AbortSignal} signal
 * @returns {Promise<KeptDocument | undefined>} `before` itself if nothing has changed; undefined if there is none.
 * @throws {ZpublishError} `source-unreadable`
 */
export async function readDocument(url, before, signal) {
  try {
    return url.startsWith("file:") ? await readLocal(url, before) : await readRemote(url, before, signal);
  } catch (error) {
    const { message = String(error), cause } = /** @type {Error} */ (error);
    const reason = cause instanceof Error ? `${message}: ${cause.message}` : message;
    throw new ZpublishError("source-unreadable", `${url}: ${reason}`, { cause: error });
  }
}

/**
 * Reads a document of this machine.
 * @param {string} url
 * @param {KeptDocument | undefined} before
 * @returns {Promise<KeptDocument | undefined>}
 */
async function readLocal(url, before) {
  const path = new URL(url);
  try {
    const { size, mtimeMs } = await stat(path);
    const stamp = `${size} ${mtimeMs}`;
    return before?.stamp === stamp
      ? before
      : { found: foundIn(parse(await readFile(path, "utf8")), url), stamp };
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Reads a document of a web server.
 * @param {string} url
 * @param {KeptDocument | undefined} before
 * @param {AbortSignal} signal
 * @returns {Promise<KeptDocument | undefined>}
 */
async function readRemote(url, before, signal) {
  const response = await fetch(url, {
    headers: { accept: "application/json", ...before?.conditions },
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
  });
  if (response.status === 304 && before !== undefined) return before;
  if (response.status === 404 || response.status === 410) return undefined;
  if (response.status !== 200) throw new Error(`expected status 200, received ${response.status}`);
  const found = foundIn(parse(await response.text()), response.url);
  const etag = response.headers.get("etag");
  const modified = response.headers.get("last-modified");
  const conditions = {
    ...(etag === null ? {} : { "if-none-match": etag }),
    ...(modified === null ? {} : { "if-modified-since": modified }),
  };
  return { found, conditions };
}

/**
 * Parses a JSON object.
 * @param {string} text
 * @returns {Record<string, any>}
 */
function parse(text) {
  const value = JSON.parse(text);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error(`expected a JSON object, received ${text.slice(0, 50)}`);
}
