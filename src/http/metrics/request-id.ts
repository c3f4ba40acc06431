import { ZpublishError } from "../../errors.js";

/** Visible ASCII: valid as the value of a header and in a log line. */
const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Headers that contain secrets; ids are written to logs and answers. */
const SECRET = new Set(["authorization", "cookie", "proxy-authorization"]);

/** Whether an id from a balancer or client can be used: at most 128 visible ASCII characters. */
export function isRequestId(text: string): boolean {
  return REQUEST_ID.test(text);
}

/** Checks the name of the header of request ids. @throws ZpublishError `invalid-config` if that header contains secrets. */
export function checkRequestIdHeader(name: string): void {
  if (!SECRET.has(name)) return;
  throw new ZpublishError(
    "invalid-config",
    `Header of request ids: expected one such as 'x-request-id', received '${name}', which is never logged`,
  );
}
