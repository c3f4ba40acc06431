import { ZpublishError } from "../../errors.js";
import type { ObjectRange, ReadObjectOptions } from "../byte-store.js";
import { unreadable, versionOfAnswer } from "./answer-rules.js";
import type { Answer } from "./exchange.js";

/** Returns the error for an answer that has no object. @param reason Why the server refuses it. */
export function refusalError(
  request: ReadObjectOptions & { readonly key: string },
  answer: Answer,
  location: string,
  reason: string,
): ZpublishError {
  const { key, version, range } = request;
  const { status } = answer;
  if (status === 412 && version !== undefined) return changed(key);
  if (status === 416 && range !== undefined) {
    const total = /^bytes \*\/(\d{1,15})$/.exec(answer.header("content-range") ?? "")?.[1];
    if (total === undefined) return unreadable(key, `expected ${lastOf(range)} bytes, received none (416)`);
    const received = Number(total);
    const isOther = version !== undefined && versionOfAnswer(answer, received).token !== version.token;
    return isOther && answer.header("etag") !== undefined ? changed(key) : shortError(key, range, received);
  }
  if (status >= 300 && status < 400 && status !== 304)
    return unreadable(key, `${location} redirects to ${targetOf(answer)}: expected a location that does not`);
  return unreadable(key, `${location} refuses it (${reason})`);
}

/**
 * Asserts that an object has the bytes of a range: fewer are no answer.
 * @throws ZpublishError `corrupt-chunk`
 */
export function assertHasRange(key: string, objectByteLength: number, range: ObjectRange | undefined): void {
  if (range !== undefined && objectByteLength < lastOf(range)) throw shortError(key, range, objectByteLength);
}

/** Returns the error for an object that is longer than it may be. */
export function overlongError(key: string, expected: number, received: number): ZpublishError {
  const message = `'${key}': expected at most ${expected} bytes, received more`;
  return new ZpublishError("corrupt-chunk", message, { details: { key, expected, received } });
}

/** Returns the error for an object that has another version than its reader expects. */
export function changed(key: string): ZpublishError {
  return new ZpublishError("source-changed", `'${key}' changed while it was being read`, {
    details: { key },
  });
}

function shortError(key: string, range: ObjectRange, received: number): ZpublishError {
  const expected = lastOf(range);
  const message = `'${key}': expected at least ${expected} bytes, received ${received}`;
  return new ZpublishError("corrupt-chunk", message, { details: { key, expected, received } });
}

/** Returns the length that an object needs to have the bytes of a range. */
function lastOf(range: ObjectRange): number {
  return "last" in range ? range.last : range.offset + range.byteLength;
}

/** Returns where a redirect leads, without its query, which may have credentials. */
function targetOf({ header }: Answer): string {
  try {
    const { origin, pathname } = new URL(header("location") ?? "");
    return origin + pathname;
  } catch {
    return "another path";
  }
}
