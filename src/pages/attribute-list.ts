import type { JsonObject } from "../json/json-value.js";
import { formatAttribute } from "./format-json.js";
import { formatCount } from "./format-number.js";
import { type Markup, markup, NO_MARKUP } from "./markup.js";
import type { PageBudget } from "./page-budget.js";

/** Characters and lines of a value that are shown before it folds. */
const SHORT_CHARS = 300;
const SHORT_LINES = 5;

const WEB_ADDRESS = /^https?:\/\/[^\s<>"']+$/;

/** Renders attributes as a description list; empty if there are none. Long values fold. */
export function renderAttributes(attrs: JsonObject, budget: PageBudget): Markup {
  const names = Object.keys(attrs);
  if (names.length === 0) return NO_MARKUP;
  return markup`<dl class="attrs">${names.map((name) => renderAttribute(name, formatAttribute(attrs[name] ?? null), budget))}</dl>`;
}

function renderAttribute(name: string, value: string, budget: PageBudget): Markup {
  const room = Math.min(budget.attributeValueChars, budget.attributeChars);
  budget.attributeChars -= Math.min(room, value.length + name.length);
  const shown = value.length <= room ? value : value.slice(0, room);
  const rest =
    shown.length < value.length &&
    markup` <span class="muted">(${formatCount(value.length - shown.length)} more characters: see <code>info</code>)</span>`;
  return markup`<div><dt><bdi>${name}</bdi></dt><dd dir="auto">${renderValue(shown)}${rest}</dd></div>`;
}

function renderValue(value: string): Markup | string {
  if (WEB_ADDRESS.test(value)) return markup`<a href="${value}" rel="noreferrer nofollow">${value}</a>`;
  const short = startOf(value);
  if (short === value) return value;
  return markup`<details class="long"><summary>${short}</summary><div>${value}</div></details>`;
}

/** Returns the part of a value that is shown before the fold: its first lines. */
function startOf(value: string): string {
  let end = -1;
  for (let line = 0; line < SHORT_LINES; line++) {
    end = value.indexOf("\n", end + 1);
    if (end === -1 || end > SHORT_CHARS) break;
  }
  if (end !== -1 && end <= SHORT_CHARS) return value.slice(0, end);
  // A fold is not worth it for a little more than the limit.
  return value.length <= SHORT_CHARS + 60 && end === -1 ? value : value.slice(0, SHORT_CHARS);
}
