import { ZpublishError } from "../../errors.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { parseJson, parseJsonAround } from "../../json/parse-json.js";
import type { Reference } from "./reference-store.js";
import { createReferenceTable, type ReferenceTable } from "./reference-table.js";

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
  if (version !== 1) throw unsupported(`expected version 0 or 1, received ${String(version)}`);
  if (document.refs !== undefined) assertObject(document);
  const { gen } = document;
  if (gen !== undefined && !(isJsonArray(gen) && gen.length === 0))
    throw unsupported("expected each reference under 'refs', received a rule for them under 'gen'");
  const expand = expandIn(yield* templatesOf(document));
  for (const url of withTemplates) {
    expand(url);
    yield;
  }
  return { table, expand };
}

function assertObject(document: JsonValue): void {
  if (!isJsonObject(document) || !isJsonObject(document.refs)) throw invalid("expected an object");
}

/** Characters of a URL with its templates filled in, and of a template. */
const MAX_FILLED = 16_384;

/** Reads the templates, of which each may name others that name none. */
function* templatesOf(document: JsonObject): CooperativeTask<ReadonlyMap<string, string>> {
  const templates = document.templates ?? {};
  if (!isJsonObject(templates)) throw invalid("expected 'templates' to be an object");
  const plain = new Map<string, string>();
  const composed = new Map<string, string>();
  for (const [name, value] of Object.entries(templates)) {
    if (typeof value !== "string") throw invalid(`expected the template '${name}' to be a text`);
    (value.includes("{{") ? composed : plain).set(name, value);
  }
  const filled = new Map(plain);
  for (const [name, value] of composed) {
    filled.set(name, fillIn(value, plain));
    yield;
  }
  return filled;
}

/**
 * Returns the function that fills in URLs. Without templates, braces are part of a URL, as in fsspec. A function of its own, so
 * that what it returns does not retain the text.
 */
function expandIn(templates: ReadonlyMap<string, string>): (url: string) => string {
  return (url) => (templates.size > 0 && url.includes("{{") ? fillIn(url, templates) : url);
}

/** Puts the texts of templates in place of `{{name}}`. @throws ZpublishError `unsupported` */
function fillIn(text: string, templates: ReadonlyMap<string, string>): string {
  const refused = (expected: string) =>
    unsupported(`expected ${expected}, received '${text.replace(/\?.*$/s, "").slice(0, 200)}'`);
  if (text.length > MAX_FILLED) throw refused(`at most ${MAX_FILLED} characters`);
  if (/\{[%#]/.test(text)) throw refused("templates of the form {{name}}");
  let filled = "";
  for (const [index, part] of text.split(/\{\{(.*?)\}\}/s).entries()) {
    const [, name] = index % 2 === 1 ? (/^\s*([A-Za-z_]\w*)\s*$/.exec(part) ?? []) : [];
    if (name === undefined && (index % 2 === 1 || part.includes("{{")))
      throw refused("templates of the form {{name}}, without arguments and arithmetic");
    const value = name === undefined ? part : templates.get(name);
    if (value === undefined) throw refused(`'${name}' among the templates that name no others`);
    filled += value;
    if (filled.length > MAX_FILLED) throw refused(`at most ${MAX_FILLED} characters once it is filled in`);
  }
  return filled;
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

function unsupported(problem: string): ZpublishError {
  return new ZpublishError("unsupported", `references: ${problem}`);
}
