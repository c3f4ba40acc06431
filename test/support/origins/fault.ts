import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { bucketError } from "./serve-bucket.js";
import type { OriginAnswer, OriginObject } from "./serve-object.js";

/** Faults of one answer: those of all fields come together. */
export interface Fault {
  /** Milliseconds before the answer. */
  readonly delay?: number;
  /** Never answers, or never after the headers. */
  readonly hang?: "before-headers" | "after-headers";
  /** Closes the connection without an answer. */
  readonly disconnect?: true;
  /** Answers with this status in place of the object: 503, 429, 403, 500. */
  readonly status?: number;
  /** Answers with this error of S3, such as `SlowDown`. */
  readonly code?: string;
  /** Value of `Retry-After`. */
  readonly retryAfter?: string;
  /** Answers 302 with this location. */
  readonly redirect?: string;
  /** Answers 200 with a page, as networks do that want a sign-in. */
  readonly html?: true;
  /** Serves this in place of the object: another version, or other headers. */
  readonly object?: OriginObject;
  /** Entity tag and modification time in place of the object's; null for none. */
  readonly etag?: string | null;
  readonly lastModified?: string | null;
  /** Answers 200 with the whole object. */
  readonly ignoreRange?: true;
  /** Answers ranges with so many of their bytes at most, the first or the last ones. */
  readonly shortRange?: { readonly bytes: number; readonly from?: "end" };
  /** `Content-Range` in place of the right one; null for none. */
  readonly contentRange?: string | null;
  /** Compresses the body, though nobody asked for it. */
  readonly gzip?: true;
  /** Sends no `Content-Length`. */
  readonly chunked?: true;
  /** Bytes that `Content-Length` has too many, or, below 0, too few. */
  readonly lengthError?: number;
  /** Destroys the connection after so many bytes of the body. */
  readonly cutAfter?: number;
  /** Sends so many bytes of the body at a time, and waits so many milliseconds after each. */
  readonly trickle?: { readonly bytes: number; readonly ms: number };
}

const PAGE = "<!DOCTYPE html><html><body>Please sign in.</body></html>";

/** Returns the answer that comes in place of any other. */
export function faultAnswer(fault: Fault): OriginAnswer | undefined {
  if (fault.code !== undefined) return bucketError(fault.code);
  const html = { "content-type": "text/html" };
  if (fault.status !== undefined) return { status: fault.status, headers: html, body: Buffer.from(PAGE) };
  if (fault.redirect !== undefined) {
    return { status: 302, headers: { location: fault.redirect }, body: Buffer.from("") };
  }
  return fault.html === undefined ? undefined : { status: 200, headers: html, body: Buffer.from(PAGE) };
}

/** Returns the object as a fault shows it. */
export function faultyObject(object: OriginObject, fault: Fault): OriginObject {
  const { bytes, etag, lastModified } = fault.object ?? object;
  return {
    bytes,
    etag: fault.etag === undefined ? etag : (fault.etag ?? undefined),
    lastModified: fault.lastModified === undefined ? lastModified : (fault.lastModified ?? undefined),
  };
}

/** Returns an answer of 206 with fewer bytes than were asked for. */
export function shortAnswer(answer: OriginAnswer, { shortRange }: Fault): OriginAnswer {
  const found = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers["content-range"] ?? "");
  if (shortRange === undefined || answer.status !== 206 || found === null) return answer;
  const [first, last, total] = found.slice(1).map(Number) as [number, number, number];
  const isEnd = shortRange.from === "end";
  const start = isEnd ? Math.max(first, last + 1 - shortRange.bytes) : first;
  const end = isEnd ? last + 1 : Math.min(last + 1, first + shortRange.bytes);
  return {
    ...answer,
    headers: { ...answer.headers, "content-range": `bytes ${start}-${end - 1}/${total}` },
    body: answer.body.subarray(start - first, end - first),
  };
}

/** Sends an answer, with what the fault makes of it. */
export async function sendAnswer(
  response: ServerResponse,
  method: string,
  answer: OriginAnswer,
  fault: Fault,
): Promise<void> {
  if (fault.hang === "before-headers") return;
  if (fault.disconnect) {
    response.destroy();
    return;
  }
  const body = fault.gzip ? gzipSync(answer.body) : answer.body;
  const headers: Record<string, string> = { ...answer.headers };
  if (fault.gzip) headers["content-encoding"] = "gzip";
  if (fault.retryAfter !== undefined) headers["retry-after"] = fault.retryAfter;
  if (typeof fault.contentRange === "string") headers["content-range"] = fault.contentRange;
  if (fault.contentRange === null) delete headers["content-range"];
  const announced = body.byteLength + (fault.lengthError ?? 0);
  if (!fault.chunked && answer.status !== 304) headers["content-length"] = String(announced);
  response.writeHead(answer.status, headers);
  response.flushHeaders();
  if (fault.hang === "after-headers") return;
  if (method === "HEAD") {
    response.end();
    return;
  }
  await sendBody(response, body, fault);
  // A server that closes no connection whose body is short would leave its client waiting.
  if ((fault.lengthError ?? 0) > 0 || fault.cutAfter !== undefined) response.destroy();
  else response.end();
}

async function sendBody(response: ServerResponse, body: Uint8Array, fault: Fault): Promise<void> {
  const end = Math.min(body.byteLength, fault.cutAfter ?? body.byteLength);
  const step = fault.trickle?.bytes ?? end;
  for (let start = 0; start < end && !response.destroyed; start += step) {
    await written(response, body.subarray(start, Math.min(end, start + step)));
    if (fault.trickle !== undefined) await delay(fault.trickle.ms);
  }
}

/** Resolves once the system has the bytes, or the client has gone. */
function written(response: ServerResponse, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    response.once("close", resolve);
    response.write(bytes, () => {
      response.off("close", resolve);
      resolve();
    });
  });
}
