import type { JsonObject } from "../json/json-value.js";

const MAX_LINE_CHARS = 200;
/** What search engines take of a description. */
const MAX_DESCRIPTION_CHARS = 5_000;
const MAX_KEYWORDS = 50;

/** What a dataset says about itself. Texts are what the author of a file wrote: data, of bounded length. Undefined if there is none. */
export type DatasetFacts = ReturnType<typeof datasetFacts>;

/** Reads what attributes of a root group say about its dataset (CF 1.11, 2.6.2; Attribute Convention for Data Discovery 1.3). */
export function datasetFacts(attrs: JsonObject) {
  const line = (...names: string[]) => plainText(firstText(attrs, names), MAX_LINE_CHARS);
  const keywords = plainText(firstText(attrs, ["keywords"]), MAX_DESCRIPTION_CHARS) ?? "";
  return {
    title: line("title", "long_name"),
    description: plainText(firstText(attrs, ["summary", "description", "abstract"]), MAX_DESCRIPTION_CHARS),
    keywords: [...new Set(keywords.split(/\s*[,;]\s*/))].filter(Boolean).slice(0, MAX_KEYWORDS),
    license: line("license", "licence"),
    /** Name of a person or an institution. */
    creator: line("creator_name", "institution", "publisher_name"),
  };
}

/** Reads what attributes say about a variable, as {@link datasetFacts}. */
export function variableFacts(attrs: JsonObject) {
  const names = ["long_name", "standard_name", "description", "title"];
  return {
    description: plainText(firstText(attrs, names), MAX_LINE_CHARS),
    unit: plainText(firstText(attrs, ["units"]), MAX_LINE_CHARS),
  };
}

/** Returns the first attribute of some that is a text; undefined if none is. */
export function firstText(attrs: JsonObject, names: readonly string[]): string | undefined {
  const texts = names.map((name) => attrs[name]);
  return texts.find((value): value is string => typeof value === "string" && value !== "");
}

/**
 * Cuts a text of a file, and replaces characters that no text has by U+FFFD: control characters, lone surrogates, noncharacters and
 * those that reorder others. Undefined if nothing is left.
 */
export function plainText(text: string | undefined, maxChars = MAX_LINE_CHARS): string | undefined {
  if (text === undefined) return undefined;
  const cut = text.length <= maxChars ? text : `${text.slice(0, maxChars - 1)}…`;
  const unsafe = /[^\P{Cc}\n\t]|[\p{Cs}\p{Bidi_Control}\p{Noncharacter_Code_Point}]/gu;
  return cut.replace(unsafe, "\ufffd").trim() || undefined;
}
