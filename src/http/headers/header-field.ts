import { ZpublishError } from "../../errors.js";

/** Names and values of headers. */
export type HeaderLines = readonly (readonly [name: string, value: string])[];

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e]*$/;

/** Whether a text is valid as the value of a header: printable ASCII. */
export function isHeaderValue(value: string): boolean {
  return VALUE.test(value);
}

/**
 * Returns a header line with the line break before it, to be appended to others.
 * @throws ZpublishError `internal` if name or value contains characters that would break the answer: uWebSockets.js does not
 * check them.
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

/** Joins what one answer depends on with what all answers of the app depend on, as a `Vary` header lists it. */
export function joinVary(own: string, ofApp: string): string {
  return own === "" || ofApp === "" ? own + ofApp : `${own}, ${ofApp}`;
}
