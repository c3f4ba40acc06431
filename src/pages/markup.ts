/** Text that is HTML already. Only {@link markup} and {@link trustedMarkup} make it. */
export class Markup {
  readonly html: string;

  constructor(html: string) {
    this.html = html;
  }

  toString(): string {
    return this.html;
  }
}

/** A value in a {@link markup} template. Text is escaped, markup is not; `undefined` and `false` are omitted. */
export type MarkupValue = Markup | string | number | undefined | false | readonly MarkupValue[];

/**
 * Characters that have a meaning in HTML or would disturb a page: control characters, direction overrides, which reorder the
 * text around them, and lone surrogates. Noncharacters are reserved by {@link "./page-place.js"}.
 */
const UNSAFE = /[&<>"'\p{Cc}\p{Cs}\p{Bidi_Control}\p{Noncharacter_Code_Point}\u2028\u2029\ufeff]/gu;

const REPLACEMENTS: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
  "\n": "\n",
  "\t": "\t",
};

/** Escapes text for element content and quoted attribute values. Characters that would disturb a page become visible: `\u202e`. */
export function escapeHtml(text: string): string {
  return text.replace(UNSAFE, replacementOf);
}

function replacementOf(character: string): string {
  return (
    REPLACEMENTS[character] ?? `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, "0")}`
  );
}

/** Makes markup of a template whose values are escaped unless they are markup: markup`<p>${text}</p>`. */
export function markup(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  let html = strings[0] as string;
  for (let index = 0; index < values.length; index++) {
    html += htmlOf(values[index]) + (strings[index + 1] as string);
  }
  return new Markup(html);
}

/** Marks constant text as markup. Never used for text from a dataset or a request. */
export function trustedMarkup(html: string): Markup {
  return new Markup(html);
}

/** Empty markup. */
export const NO_MARKUP = new Markup("");

function htmlOf(value: MarkupValue): string {
  if (value instanceof Markup) return value.html;
  if (typeof value === "string") return escapeHtml(value);
  if (typeof value === "number") return String(value);
  if (value === undefined || value === false) return "";
  let html = "";
  for (const item of value) html += htmlOf(item);
  return html;
}
