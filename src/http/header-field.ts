import { ZpublishError } from "../errors.js";

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/** Whether a text can be sent as the value of a header: printable ASCII. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * One header line with the line break before it, to be appended to others.
 * @throws ZpublishError `internal` where a name or value holds what would break the answer: uWebSockets.js writes
 * everything it is given.
 */
export function headerField(name: string, value: string): string {
  if (!TOKEN.test(name) || !isHeaderValue(value)) {
    throw new ZpublishError(
      "internal",
      `Header ${JSON.stringify(name)} cannot be sent: expected printable ASCII, received ${JSON.stringify(value)}`,
    );
  }
  return `\r\n${name}: ${value}`;
}
