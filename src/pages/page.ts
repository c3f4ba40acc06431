import { createHash } from "node:crypto";
import type { HeaderLines } from "../http/headers.js";

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
type MarkupValue = Markup | string | number | undefined | false | readonly MarkupValue[];

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

/** The style sheet of all pages, inline: it needs no second request, and no URL that a root path would change. */
const PAGE_STYLE = trustedMarkup(
  `
:root{color-scheme:light dark;--bg:#fff;--panel:#f5f7f9;--text:#1b2026;--muted:#57616c;--line:#d9dfe5;--accent:#0a5ca8;
--dim:#0d6650;--type:#6a3aa2;--warn:#7a4300;--warn-bg:#fff4e0;--grid:#0d6650;--face:#0d665018;--side:#0d665030;
--mono:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
@media (prefers-color-scheme:dark){:root{--bg:#11151a;--panel:#191f26;--text:#e2e8ee;--muted:#9ba7b3;--line:#2d3640;
--accent:#7db9ff;--dim:#74d0ae;--type:#c9a8f5;--warn:#ffc36b;--warn-bg:#2c2110;--grid:#74d0ae;--face:#74d0ae1c;--side:#74d0ae38}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--text);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;overflow-wrap:anywhere}
.wrap{max-width:76rem;margin:0 auto;padding:0 1rem}
a{color:var(--accent);text-decoration-thickness:1px;text-underline-offset:2px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
code,pre,.mono{font-family:var(--mono);font-size:.875em}
.muted{color:var(--muted)}
header{border-bottom:1px solid var(--line);background:var(--panel);font-size:.9rem}
header .wrap{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;padding-block:.6rem;justify-content:space-between;align-items:baseline}
header ol,.links,.chips{list-style:none;margin:0;padding:0;display:flex;flex-wrap:wrap}
header ol li+li::before{content:"/";color:var(--muted);margin:0 .45em}
header [aria-current]{font-weight:600}
header .links{margin:0}
main.wrap{padding-block:1.4rem 2.5rem}
footer{border-top:1px solid var(--line);color:var(--muted);font-size:.85rem;padding-block:.9rem}
h1{font-size:1.6rem;line-height:1.25;margin:0;font-weight:650}
h1 .path{color:var(--muted);font-weight:500}
.lead{margin:.25rem 0 0;font-size:1.05rem;color:var(--muted)}
.facts{margin:.5rem 0 0;color:var(--muted)}
.facts b{color:var(--text);font-weight:600}
.top{display:flex;flex-wrap:wrap;gap:1rem 2rem}
.about{flex:1 1 24rem;min-width:0}
.large{flex:0 1 22rem;margin:0}
.large img{display:block;width:100%;height:auto;max-height:14rem;object-fit:contain;object-position:0 0}
.large figcaption{margin-top:.3rem}
.extent{margin-top:.7rem}
.about>p{margin:.8rem 0 0}
.chips{gap:.4rem;margin:.9rem 0 0}
.chips li{border:1px solid var(--line);border-radius:1rem;padding:.1rem .7rem;background:var(--panel);font-family:var(--mono);font-size:.85rem}
.chips b{color:var(--dim)}
section{margin-top:1.5rem}
.head{font-size:1.05rem;font-weight:650;margin:0;display:inline}
.count{color:var(--muted);font-weight:400}
details>summary{cursor:pointer;list-style:none}
details>summary::-webkit-details-marker{display:none}
.fold>summary::before,.group>summary::before{content:"";display:inline-block;width:0;height:0;border:.3em solid transparent;border-left:.45em solid var(--muted);margin-right:.25em;transition:transform .1s}
.fold[open]>summary::before,.group[open]>summary::before{transform:rotate(90deg) translate(.08em,.12em)}
.rows{list-style:none;margin:.5rem 0 0;padding:0;border:1px solid var(--line);border-radius:.5rem;overflow:hidden}
.many>li{content-visibility:auto;contain-intrinsic-size:auto 2.3rem}
.rows>li+li{border-top:1px solid var(--line)}
.row{display:grid;grid-template-columns:minmax(8rem,13rem) minmax(7rem,11rem) minmax(6rem,10rem) 1fr 5.5rem;gap:0 .9rem;padding:.4rem .8rem;align-items:baseline}
summary.row:hover{background:var(--panel)}
details[open]>summary.row{background:var(--panel)}
.name{font-family:var(--mono);font-size:.9rem;position:relative;padding-left:.95em}
summary .name::before{content:"";position:absolute;left:.1em;top:.42em;border:.28em solid transparent;border-left:.4em solid var(--muted)}
details[open]>summary .name::before{transform:rotate(90deg);transform-origin:.25em 50%}
b.name{font-weight:700}
.dims{font-family:var(--mono);font-size:.85rem;color:var(--dim)}
.type{font-family:var(--mono);font-size:.85rem;color:var(--type)}
.values{min-width:0;font-size:.875rem}
.values.mono,.label{overflow:hidden;text-overflow:ellipsis;display:-webkit-box;-webkit-box-orient:vertical;-webkit-line-clamp:2}
.layout{display:block;font-family:var(--mono);font-size:.8rem}
.values.mono{font-size:.825rem}
.v{white-space:nowrap}
.size{text-align:right;color:var(--muted);font-size:.85rem;white-space:nowrap;font-variant-numeric:tabular-nums}
.more{padding:.7rem .8rem .9rem;border-top:1px dashed var(--line);display:flex;flex-wrap:wrap;gap:.8rem 2rem}
.more>*{min-width:0}
.more>.wide{flex:1 1 22rem}
.more h3,.sub{font-size:.8rem;font-weight:650;margin:0 0 .3rem;color:var(--muted);text-transform:uppercase;letter-spacing:.04em}
dl{margin:0}
dl>div{display:grid;grid-template-columns:minmax(6rem,11rem) minmax(0,1fr);gap:0 1rem;padding:.15rem 0}
dt{color:var(--muted)}
dd{margin:0;white-space:pre-wrap}
.more dl>div{grid-template-columns:minmax(5rem,9.5rem) minmax(0,1fr)}
.more dl{font-size:.875rem}
.attrs{font-size:.9rem}
.panel{border:1px solid var(--line);border-radius:.5rem;padding:.6rem .9rem;margin-top:.5rem}
.long>summary::after{content:" … show all";color:var(--accent)}
.long[open]>summary{display:none}
figure{margin:0;color:var(--muted);font-size:.8rem}
figure svg{display:block;max-width:100%;height:auto;overflow:visible}
svg .face{fill:var(--face);stroke:var(--grid)}
svg .side{fill:var(--side);stroke:var(--grid)}
svg .line{stroke:var(--grid);opacity:.55;fill:none}
svg text{fill:var(--text);font:11px var(--mono)}
pre{margin:.4rem 0 0;padding:.6rem .8rem;background:var(--panel);border:1px solid var(--line);border-radius:.4rem;white-space:pre-wrap;overflow-wrap:anywhere}
.snippet{position:relative}
.snippet button,.snippet [role=status]{position:absolute;right:.35rem;font-size:.75rem;line-height:1.4}
.snippet button{top:.35rem;font-family:inherit;padding:.05rem .5rem;color:var(--text);background:var(--bg);border:1px solid var(--line);border-radius:.3rem;cursor:pointer}
.snippet button:hover{border-color:var(--accent)}
.snippet [role=status]:not(:empty){top:2rem;padding:.05rem .5rem;background:var(--bg);border-radius:.3rem}
.snippet:has(button) .copy{padding-right:4.2rem}
.client .snippet .copy,.code .snippet .copy{white-space:pre;overflow-x:auto;padding-right:.8rem}
.links{gap:.2rem 1rem;margin:.4rem 0 0;font-size:.9rem}
.clients{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,28rem),1fr));gap:0 1.2rem}
.client .sub{text-transform:none;letter-spacing:0}
.sub .muted{font-weight:400}
.addresses{margin-top:1rem}
.client{margin-top:.8rem}
.explore{display:inline-block;padding:0 .8rem;border:1px solid var(--accent);border-radius:1rem;font-size:.9rem;font-weight:600;text-decoration:none}
.explore:hover{background:var(--panel)}
.explore::after{content:" →"}
.code{flex:1 1 100%}
.code p{margin:0 0 .3rem}
.code .fold>summary{font-size:.875rem}
.picture img{display:block;width:100%;height:100%;object-fit:contain;object-position:100% 0}
.pictured>li{position:relative}
.pictured .row{min-height:3.4rem;padding-right:7.2rem}
.pictured .picture{position:absolute;top:.2rem;right:.5rem;width:6rem;height:3rem}
.datasets .picture{float:right;width:10rem;height:5rem;margin-left:1rem}
.datasets>li{display:flow-root}
.refused{background:var(--warn-bg);border:1px solid var(--line);border-left:.3rem solid var(--warn);border-radius:.4rem;padding:.6rem .9rem}
.refused .head{color:var(--warn)}
.group{border-left:2px solid var(--line);padding-left:.9rem;margin-top:1rem}
.group section{margin-top:.8rem}
.group>summary{padding:.15rem 0}
.list{list-style:none;margin:.5rem 0 0;padding:0}
.datasets .chips{margin-top:.35rem}
.datasets .facts{margin-top:.1rem;font-size:.9rem}
.datasets>li{padding:.7rem 0 .8rem;border-top:1px solid var(--line)}
.datasets .id{font-size:1.05rem;font-weight:600}
.filter{display:flex;flex-wrap:wrap;gap:.3rem .5rem;align-items:baseline;margin:.6rem 0 0}
.filter input{flex:0 1 20rem;min-width:0;font:inherit;padding:.2rem .5rem}
.filter button{font:inherit;padding:.2rem .8rem}
.steps{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:1rem 0 0}
.problem{color:var(--warn)}
.folders{list-style:none;columns:16rem;column-gap:1.5rem;margin:.6rem 0;padding:0}
.notice{margin-top:1rem;border-left:.3rem solid var(--accent);border-radius:.4rem;background:var(--panel);padding:.6rem .9rem}
.notice p{margin:0}
.ids{columns:14rem;column-gap:1.5rem;margin:.5rem 0 0;padding:0;list-style:none}
.endpoints>div{grid-template-columns:minmax(10rem,26rem) minmax(0,1fr)}
.versions>div{grid-template-columns:minmax(6rem,15rem) minmax(0,1fr)}
@media (max-width:48rem){
.row{grid-template-columns:minmax(0,1fr) auto;gap:.05rem .8rem}
.row .type{grid-area:1/2;text-align:right}
.row .size{grid-area:2/2}
.row .dims{grid-area:2/1}
.row .values{grid-area:3/1/4/-1}
dl>div,.more dl>div{grid-template-columns:minmax(0,36%) minmax(0,1fr)}
.endpoints>div,.versions>div{grid-template-columns:1fr}
.endpoints dd{margin-bottom:.3rem}
.group{padding-left:.6rem}
.datasets{margin-top:.3rem}
h1{font-size:1.35rem}
}
@media print{header,.usage{display:none}}
`
    .trim()
    .replaceAll("\n", ""),
);

/**
 * Headers of pages. The policy permits the one style sheet and files of this service, and no other code: what a dataset says stays text
 * even if it were not escaped.
 */
export const PAGE_HEADERS: HeaderLines = Object.freeze([
  [
    "Content-Security-Policy",
    [
      "default-src 'none'",
      "script-src 'self'",
      `style-src 'sha256-${createHash("sha256").update(PAGE_STYLE.html).digest("base64")}'`,
      "img-src 'self' data:",
      "base-uri 'none'",
      "form-action 'self'",
    ].join("; "),
  ],
] as const);

/** Script of pages with code: gives each piece a button that copies it. Without it, the code is simply there. */
const COPY_SCRIPT = `for (const code of document.querySelectorAll("pre.copy")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy: " + code.getAttribute("aria-label"));
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code);
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Without https, browsers let pages copy what is selected.
      document.execCommand("copy");
    }
    said.textContent = "Copied";
    setTimeout(() => { said.textContent = ""; }, 2000);
  });
  code.after(said, button);
}
`;

/** The one file that pages have besides pictures. Its name has a hash of its content, so that browsers may keep it. */
export const PAGE_SCRIPT = {
  name: `copy-${createHash("sha256").update(COPY_SCRIPT).digest("hex").slice(0, 12)}.js`,
  content: COPY_SCRIPT,
};

/** Renders code that can be copied. @param label What it is, for a screen reader. */
export function renderCode(label: string, code: Markup | string): Markup {
  return markup`<div class="snippet"><pre class="copy" tabindex="0" role="group" aria-label="${label}">${code}</pre></div>`;
}

/** Content of an HTML page. */
export interface Page {
  readonly title: string;
  /** Links from the home page to this one; the last has no link. */
  readonly breadcrumb: readonly Crumb[];
  readonly links: readonly Crumb[];
  readonly main: Markup;
  /** One or two sentences, for search engines and for those who get a link to the page. */
  readonly description: string;
  /** Absolute URL of a picture that stands for the page; undefined if there is none. */
  readonly image?: Markup | undefined;
  /** Link to {@link PAGE_SCRIPT}. Default: the page has no code to copy. */
  readonly script?: Markup;
  /** Element with what the page says to programs. Default: there is none. */
  readonly data?: Markup;
}

/** A link in the header. */
export interface Crumb {
  readonly text: string;
  /** Relative and encoded; undefined if it is this page. */
  readonly link?: Markup | string;
}

/** Renders a complete HTML document, which is whole without its script. */
export function renderPage(page: Page): string {
  const { title, breadcrumb, links, main, description, image, script, data } = page;
  return markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${renderSummary({ title, description, image })}
<link rel="icon" href="data:,">
<style>${PAGE_STYLE}</style>
${
  script !== undefined &&
  markup`<script defer src="${script}"></script>
`
}${data}</head>
<body>
<header><div class="wrap"><nav aria-label="Breadcrumb"><ol>${breadcrumb.map(renderCrumb)}</ol></nav>${links.length > 0 && markup`<nav aria-label="Service"><ul class="links bar">${links.map(renderCrumb)}</ul></nav>`}</div></header>
<main class="wrap">
${main}
</main>
<footer><div class="wrap">Served by zpublish.</div></footer>
</body>
</html>
`.html;
}

/** Renders what other sites show of a link to a page (The Open Graph protocol). */
export function renderSummary({
  title,
  description,
  image,
}: Pick<Page, "title" | "description" | "image">): Markup {
  return markup`<meta name="description" content="${description}">
<meta property="og:type" content="website">
<meta property="og:title" content="${title}">
<meta property="og:description" content="${description}">${
    image !== undefined &&
    markup`
<meta property="og:image" content="${image}">`
  }`;
}

function renderCrumb({ text, link }: Crumb): Markup {
  return link === undefined
    ? markup`<li aria-current="page"><bdi>${text}</bdi></li>`
    : markup`<li><a href="${link}"><bdi>${text}</bdi></a></li>`;
}

/**
 * Percent-encodes a path segment for a relative link, quotes included: fsspec's link pattern ends at either quote. Lone
 * surrogates become U+FFFD.
 */
export function encodeSegment(segment: string): string {
  const encoded = encodeURIComponent(segment.replace(/\p{Cs}/gu, "\ufffd"));
  return encoded.replace(/[!'()*]/g, percentEncode).replaceAll("%40", "@");
}

/** Percent-encodes each segment of a path: `/a b/c` → `/a%20b/c`. */
export function encodePath(path: string): string {
  return path.split("/").map(encodeSegment).join("/");
}

function percentEncode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"] as const;

/** Formats bytes in binary units with three significant digits: `0 B`, `999 B`, `1.50 KiB`, `14.8 MiB`, `512 GiB`. */
export function formatByteLength(byteLength: number): string {
  let value = byteLength;
  let unit = 0;
  // 1023.5 would round to 1024 of a unit instead of 1.00 of the next.
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  if (unit === 0) return `${value} B`;
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${BYTE_UNITS[unit] as string}`;
}

const THOUSANDS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Cuts a long text, with an ellipsis at its end. */
export function shortened(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

/** Formats a whole number with commas between thousands: `2,920`. */
export function formatCount(count: number): string {
  return THOUSANDS.format(count);
}

/** Formats a count and its noun: `1 chunk`, `2 chunks`. */
export function formatCounted(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? "" : "s"}`;
}
