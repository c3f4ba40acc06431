import { ZpublishError } from "../../../errors.js";
import type { CooperativeTask } from "../../../event-loop/cooperative-task.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../../json/json-value.js";
import { parseJson, parseJsonAround } from "../../../json/parse-json.js";
import { generateReferences } from "./generate-references.js";
import type { Reference } from "./reference-store.js";
import { createReferenceTable, type ReferenceTable } from "./reference-table.js";
import { compileTemplate, type TemplateScope, templateValue } from "./template.js";

/** The references of a JSON document. */
export interface ParsedReferences {
  readonly table: ReferenceTable;
  /** Fills in the templates of a URL. */
  readonly expand: (url: string) => string;
}

/**
 * Parses kerchunk's JSON in steps: version 1, or version 0, which is an object of references.
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function* parseReferences(text: string): CooperativeTask<ParsedReferences> {
  const table = createReferenceTable();
  const withTemplates = new Set<string>();
  let source = text;
  function take(key: string, start: number, end: number): void {
    const reference = parseReference(key, source.slice(start, end));
    table.set(key, reference);
    if ("url" in reference && reference.url.includes("{{")) withTemplates.add(reference.url);
  }

  // Version 0 has no such key, unless it is that of an array.
  const document = /"version"\s*:/.test(text) ? yield* parseJsonAround(text, "refs", take) : {};
  const version = isJsonObject(document) && Object.hasOwn(document, "version") ? document.version : undefined;
  if (!isJsonObject(document) || version === undefined || isJsonArray(version)) {
    source = `{"refs":${text}}`;
    assertObject(yield* parseJsonAround(source, "refs", take));
    return { table, expand: expandIn(new Map()) };
  }
  if (version !== 1) {
    throw new ZpublishError(
      "unsupported",
      `expected references of version 0 or 1, received ${String(version)}`,
    );
  }
  if (document.refs !== undefined) assertObject(document);
  const scope = templatesOf(document);
  yield* generateReferences(document.gen ?? [], scope, (key, reference) => table.set(key, reference));
  const expand = expandIn(scope);
  for (const url of withTemplates) {
    expand(url);
    yield;
  }
  return { table, expand };
}

/**
 * Returns the function that fills in URLs. Without templates, braces are part of a URL, as in fsspec. A function of its own, so
 * that what it returns does not retain the text.
 */
function expandIn(scope: TemplateScope): (url: string) => string {
  return (url) => (scope.size > 0 && url.includes("{{") ? compileTemplate(url)(scope) : url);
}

function assertObject(document: JsonValue): void {
  if (!isJsonObject(document) || !isJsonObject(document.refs)) throw invalid("expected an object");
}

function templatesOf(document: JsonObject): TemplateScope {
  const templates = document.templates ?? {};
  if (!isJsonObject(templates)) throw invalid("expected 'templates' to be an object");
  return new Map(
    Object.entries(templates).map(([name, value]) => {
      if (typeof value !== "string") throw invalid(`expected the template '${name}' to be a text`);
      return [name, templateValue(value)];
    }),
  );
}

const BASE64 = "base64:";

/** Parses the value of a reference: a text, an object, or an array with a URL. */
function parseReference(key: string, text: string): Reference {
  // Objects stay as they are written.
  if (text.startsWith("{")) return { inline: Buffer.from(text) };
  const value = parseJson(text);
  return typeof value === "string" ? inlineReference(key, value) : urlReference(key, value);
}

/** Returns inline data: a text, or bytes in base64. @throws ZpublishError `invalid-metadata` */
export function inlineReference(key: string, text: string): Reference {
  if (!text.startsWith(BASE64)) return { inline: Buffer.from(text) };
  const encoded = text.slice(BASE64.length);
  if (/^[A-Za-z0-9+/\s]*={0,2}\s*$/.test(encoded)) return { inline: Buffer.from(encoded, "base64") };
  throw invalid(`expected base64 for '${key}'`);
}

function urlReference(key: string, value: JsonValue): Reference {
  const [url, offset, byteLength, ...more] = isJsonArray(value) ? value : [];
  if (typeof url === "string" && url !== "" && more.length === 0) {
    if (offset === undefined) return { url, part: undefined };
    if (isLength(offset) && isLength(byteLength) && Number.isSafeInteger(offset + byteLength)) {
      return { url, part: { offset, byteLength } };
    }
  }
  throw invalid(`expected a text, [URL] or [URL, offset, length] for '${key}'`);
}

function isLength(value: JsonValue | undefined): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

/** Creates an error about the structure of references. */
function invalid(problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `references: ${problem}`);
}
