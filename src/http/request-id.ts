import { ZpublishError } from "../errors.js";

/** Visible ASCII, so that it can be a header's value and stand in a line of a log. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Headers that hold secrets: what is an id goes into logs and answers. */
const SECRET = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Whether what a balancer or a client calls a request may be used: at most 128 visible ASCII characters. */
export function isRequestId(text: string): boolean {
  return REQUEST_ID.test(text);
}

/** @throws ZpublishError `invalid-config` where a header that holds secrets is to be the id's. */
export function checkRequestIdHeader(name: string): void {
  if (!SECRET.has(name)) return;
  throw new ZpublishError(
    "invalid-config",
    `Header of request ids: expected one such as 'x-request-id', received '${name}', which is never logged`,
  );
}
