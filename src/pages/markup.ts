/** Text that is HTML already. Made by {@link markup} and {@link trustedMarkup} only. */
export class Markup {
  readonly html: string;

  constructor(html: string) {
    this.html = html;
  }

  toString(): string {
    return this.html;
  }
}

/** What may stand in a {@link markup} template: text is escaped, markup is not, nothing (`undefined`, `false`) is nothing. */
export type MarkupValue = Markup | string | number | undefined | false | readonly MarkupValue[];

/**
 * What has a meaning to HTML or would disturb a page: control characters, direction overrides (which reorder the text
 * around them), lone surrogates, and noncharacters, which {@link "./page-place.js"} keeps for itself.
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

/** Text as HTML, for element content and quoted attribute values; characters nobody should see act are shown as `\u202e`. */
export function escapeHtml(text: string): string {
  return text.replace(UNSAFE, replacementOf);
}

function replacementOf(character: string): string {
  return (
    REPLACEMENTS[character] ?? `\\u${(character.codePointAt(0) as number).toString(16).padStart(4, "0")}`
  );
}

/** Tag of templates whose values are escaped unless they are markup: markup`<p>${text}</p>`. */
export function markup(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  let html = strings[0] as string;
  for (let index = 0; index < values.length; index++) {
    html += htmlOf(values[index]) + (strings[index + 1] as string);
  }
  return new Markup(html);
}

/** Marks text of our own as markup. Never for anything that came from a dataset or a request. */
export function trustedMarkup(html: string): Markup {
  return new Markup(html);
}

/** Nothing. */
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
