import { encodePath, encodeSegment } from "./encode-path.js";
import { type Markup, markup, trustedMarkup } from "./markup.js";

/** Content of a directory page. */
export interface Listing {
  /** Path of the directory as clients know it, below any root path: `/datasets/air/zarr/`. */
  readonly title: string;
  /** Names in the directory. Those of directories end with a slash: `air/`, `.zattrs`. */
  readonly entries: readonly string[];
}

/**
 * Renders a directory page that programs can read: one relative link per line, `<a href="name/">name/</a>`, and `../`.
 *
 * - GDAL (3.4 to 3.10, `ParseHTMLFileList`) accepts a title `Index of <path>` with the full encoded path of the URL, or a title
 *   in which the text after `: ` is *part* of that path. The page uses the second form, which also works behind a proxy that
 *   adds a prefix. GDAL reads the first `<a href="` of each line, and needs the newline.
 * - fsspec matches `<a … href="…"`, and drops links that begin with `http` and are no URL below the directory. So the first
 *   letter of such a name is percent-encoded. It takes any text that looks like a URL for a link.
 * - neuroglancer reads the links relative to the page, one level deep.
 */
export function renderListing(listing: Listing): string {
  return [...listingPieces(listing)].join("");
}

/** {@link renderListing} in pieces, line by line. */
export function* listingPieces({ title, entries }: Listing): Generator<string, void, undefined> {
  yield markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Index of: ${encodePath(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Index of ${title}</h1>
<ul>
<li><a href="../">../</a></li>
`.html;
  for (const entry of entries) yield entryLine(entry).html;
  yield `</ul>
</body>
</html>
`;
}

const STYLE = trustedMarkup(
  ":root{color-scheme:light dark}" +
    "body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.6 ui-monospace,monospace;overflow-wrap:anywhere}" +
    "h1{font-size:1.1rem}ul{list-style:none;padding:0}a{text-decoration:none}a:hover{text-decoration:underline}",
);

function entryLine(entry: string): Markup {
  const isDirectory = entry.endsWith("/");
  const name = isDirectory ? entry.slice(0, -1) : entry;
  const link = encodeSegment(name).replace(/^http/i, "%68ttp") + (isDirectory ? "/" : "");
  return markup`<li><a href="${link}">${entry}</a></li>
`;
}
