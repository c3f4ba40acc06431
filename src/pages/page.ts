import { type Markup, markup } from "./markup.js";
import { PAGE_STYLE } from "./page-style.js";

/** Content of an HTML page. */
export interface Page {
  /** Title in the browser's tab. */
  readonly title: string;
  /** Links from the home page to this one; the last has no link. */
  readonly breadcrumb: readonly Crumb[];
  /** Links at the end of the header. */
  readonly links: readonly Crumb[];
  readonly main: Markup;
  /** One or two sentences, for search engines and for those who get a link to the page. */
  readonly description: string;
  /** Absolute URL of a picture that stands for the page; undefined if there is none. */
  readonly image?: Markup | undefined;
}

/** A link in the header. */
export interface Crumb {
  readonly text: string;
  /** Relative and encoded; undefined if it is this page. */
  readonly link?: Markup | string;
}

/** Renders a complete HTML document, without scripts and, but for pictures, without files to fetch. */
export function renderPage({ title, breadcrumb, links, main, description, image }: Page): string {
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
</head>
<body>
<header><div class="wrap"><nav aria-label="Breadcrumb"><ol>${breadcrumb.map(renderCrumb)}</ol></nav><nav aria-label="Service"><ul class="links bar">${links.map(renderCrumb)}</ul></nav></div></header>
<main class="wrap">
${main}
</main>
<footer><div class="wrap">Served by zpublish. Values are shown as stored; times are decoded in first values only.</div></footer>
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
