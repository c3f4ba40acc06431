import type { Route } from "../http/router.js";
import { markup, trustedMarkup } from "./page.js";

/**
 * Renders the page that shows the OpenAPI document with Swagger UI, or the list of routes if scripts are off. Its links are
 * relative to the directory of `/docs`.
 * @param version Version of the assets. It is part of their URLs, so that browsers can cache them.
 */
export function renderDocsPage(title: string, routes: readonly Route[], version: string): string {
  const query = `?v=${encodeURIComponent(version)}`;
  return markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>API · ${title}</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png${query}">
<link rel="stylesheet" href="docs/swagger-ui.css${query}">
<style>${STYLE}</style>
<script defer src="docs/swagger-ui-bundle.js${query}"></script>
<script defer src="docs/start.js${query}"></script>
</head>
<body>
<header><a href="./">${title}</a><a href="openapi.json">openapi.json</a></header>
<main>
<div id="swagger-ui"></div>
<noscript><h1>${title}</h1><p>This browser runs no scripts, so this page lists the addresses only. <a href="openapi.json">openapi.json</a> describes them in full.</p>
<dl>${routes.map(
    ({
      path,
      operation,
      methods,
    }) => markup`<dt><code>${(methods ?? ["GET"]).join(", ")} ${path}</code></dt><dd>${operation.summary}</dd>
`,
  )}</dl></noscript>
</main>
</body>
</html>
`.html;
}

/**
 * Style of the page. Swagger UI 5 has no dark theme: its light one is inverted, with hues turned back. HEAD, which every
 * route answers, is hidden because it would double every line.
 */
const STYLE = trustedMarkup(
  `
:root{color-scheme:light dark}
body{margin:0;background:#fff;color:#1b2026;font:1rem/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
header{display:flex;flex-wrap:wrap;gap:.25rem 1.5rem;justify-content:space-between;padding:.6rem 1rem;background:#f5f7f9;border-bottom:1px solid #d9dfe5;font-size:.9rem}
header a{color:#0a5ca8}
noscript{display:block;max-width:60rem;margin:0 auto;padding:1rem}
.swagger-ui .info{margin:1.5rem 0}
.swagger-ui .scheme-container{padding:1rem 0;box-shadow:none;background:none}
.swagger-ui .opblock.opblock-head{display:none}
.swagger-ui .opblock-summary-path{max-width:none}
@media (max-width:40rem){.swagger-ui .wrapper{padding:0 .6rem}.swagger-ui .opblock-summary{flex-wrap:wrap}.swagger-ui .opblock .opblock-summary-path{max-width:calc(100% - 110px)}.swagger-ui table{display:block;overflow-x:auto}}
@media (prefers-color-scheme:dark){
body{background:#11151a;color:#e2e8ee}
header{background:#191f26;border-color:#2d3640}
header a{color:#7db9ff}
#swagger-ui{filter:invert(.9) hue-rotate(180deg)}
#swagger-ui .microlight,#swagger-ui .highlight-code,#swagger-ui .opblock-summary-method{filter:invert(1) hue-rotate(180deg)}
}
`
    .trim()
    .replaceAll("\n", ""),
);
