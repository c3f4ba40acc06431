import { ZpublishError } from "../../errors.js";
import { isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { invalidField } from "../metadata-fields.js";

/** Name of a v3 node's document, for messages. */
export const v3Document = "zarr.json";

/** An extension point of v3: a codec, a data type, a grid, by name and configuration. */
export interface Extension {
  readonly name: string;
  readonly configuration: JsonObject;
  /** Whether a reader that does not know the extension must reject the node. */
  readonly mustUnderstand: boolean;
}

/**
 * Parses `{"name":…,"configuration":{…}}`, or its short form `"name"`.
 * @throws ZpublishError `invalid-metadata`
 */
export function parseExtension(value: JsonValue | undefined, what: string): Extension {
  if (typeof value === "string") return { name: value, configuration: {}, mustUnderstand: true };
  if (!isJsonObject(value) || typeof value.name !== "string") {
    throw invalidField(v3Document, `${what} to be a name or an object with a name`, value);
  }
  const configuration = value.configuration ?? {};
  if (!isJsonObject(configuration)) {
    throw invalidField(v3Document, `the configuration of ${what} to be an object`, configuration);
  }
  return { name: value.name, configuration, mustUnderstand: value.must_understand !== false };
}

/** Makes an `unsupported` error that says what was expected and what was received. */
export function unsupported(expected: string, received: string): ZpublishError {
  return new ZpublishError("unsupported", `${v3Document}: expected ${expected}, received ${received}`);
}

/**
 * Asserts that every key is known, or that its value says that it need not be understood.
 * @throws ZpublishError `unsupported`
 */
export function assertKnownKeys(document: JsonObject, known: ReadonlySet<string>): void {
  for (const [key, value] of Object.entries(document)) {
    if (known.has(key) || (isJsonObject(value) && value.must_understand === false)) continue;
    throw unsupported(
      "no extension that must be understood and is not",
      `the field ${JSON.stringify(key.slice(0, 100))}`,
    );
  }
}
