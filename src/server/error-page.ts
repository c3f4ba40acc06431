import type { DatasetPath } from "../dataset/dataset.js";
import { queryToken } from "../http/access/authorize.js";
import type { ErrorFacts, RenderErrorPage } from "../http/reply.js";
import {
  encodeSegment,
  type Markup,
  markup,
  NO_MARKUP,
  PAGE_HEADERS,
  renderPage,
  trustedMarkup,
} from "../pages/page.js";
import { placeOf, placePage, ROOT, TOKEN_QUERY } from "../pages/page-place.js";

/** Heading and sentence of a page by its status; the sentence is the error's own if there is none here. */
const TEXTS: Readonly<Record<string, { readonly heading: string; readonly sentence?: string }>> = {
  "401": {
    heading: "You need a token",
    sentence: "This service answers only those who have a token. The operator of the service gives them out.",
  },
  "403": { heading: "Not for this token" },
  "404": { heading: "Not found" },
  "405": { heading: "Not possible here", sentence: "This service only reads: it answers GET and HEAD." },
  "412": { heading: "Changed meanwhile" },
  "414": { heading: "This address is too long" },
  "416": { heading: "No such part" },
  "422": { heading: "This address is not valid" },
  "500": { heading: "This cannot be shown" },
  "503": { heading: "Not available at the moment" },
};

/** Heading and sentence for a token in the query that is none of the server's. */
const WRONG_TOKEN = {
  heading: "This token is not valid",
  sentence: "The service does not know the token in this address, or no longer.",
};

function textsOf({ status, code, query }: ErrorFacts): { heading?: string; sentence?: string } {
  if (code === "unauthorized" && queryToken(query) !== undefined) return WRONG_TOKEN;
  return TEXTS[status.slice(0, 3)] ?? {};
}

/**
 * Creates what renders the pages about errors: what happened, why if that may be said, the id of the request, and ways back.
 * @param title Title of the service.
 * @param hasPage Tells whether a dataset has a page that can be linked to.
 */
export function createErrorPage(
  title: string,
  datasetPath: DatasetPath,
  hasPage: (datasetId: string) => boolean,
): RenderErrorPage {
  return (error) => {
    const { status, root, query, datasetId } = error;
    const { heading = status.slice(4), sentence = sentenceOf(error) } = textsOf(error);
    const home = trustedMarkup(`${ROOT}${TOKEN_QUERY}`);
    const dataset = datasetId !== undefined && hasPage(datasetId) ? datasetId : undefined;
    const html = renderPage({
      title: `${heading} · ${title}`,
      breadcrumb: [{ text: title, link: home }, { text: heading }],
      links: [],
      description: sentence,
      main: markup`<h1>${heading}</h1>
<p class="lead">${sentence}</p>
${error.reason !== undefined && markup`<p>The reason: ${error.reason}.</p>`}
${error.code === "unauthorized" && TOKEN_FORM}
${status.startsWith("5") && markup`<p>If this continues, tell the operator of the service the id of this request. The log of the server says more under it.</p>`}
<p class="muted">${status} · request <code>${error.requestId}</code></p>
<ul class="links">${status.startsWith("503") && markup`<li><a href="">Try again</a></li>`}${dataset !== undefined && datasetLink(dataset, datasetPath)}<li><a href="${home}">Start page</a></li></ul>`,
    });
    // A token that was refused is of no use in a link.
    const asked = error.code === "unauthorized" ? "" : query;
    const place = { ...placeOf({ rawPath: "/", serviceUrl: "", query: asked }), root };
    return { html: placePage(html, place), headers: PAGE_HEADERS };
  };
}

/** Renders a link to a dataset; empty if it is published alone, so that its page is the start page. */
function datasetLink(id: string, datasetPath: DatasetPath): Markup {
  const path = datasetPath(encodeSegment(id)).slice(1);
  if (path === "") return NO_MARKUP;
  return markup`<li><a href="${trustedMarkup(`${ROOT}${path}${TOKEN_QUERY}`)}">Dataset <bdi>${id}</bdi></a></li>`;
}

/** A form that asks for the same address with a token. */
const TOKEN_FORM = trustedMarkup(
  '<form class="filter"><label for="token">Token</label> <input id="token" name="token" type="password" autocomplete="off" required> <button>Open</button></form>',
);

/** Sentences of pages about a dataset that cannot be read, by the code of the error. */
const SENTENCES: Partial<Record<ErrorFacts["code"], string>> = {
  unsupported: "This dataset is stored in a way that the service cannot read.",
  "invalid-metadata": "This dataset is damaged or incomplete.",
  "source-unreadable": "The place where this dataset is stored cannot be read at the moment.",
  "corrupt-chunk": "This part of the dataset is damaged.",
  internal: "Something went wrong in the service.",
};

function sentenceOf({ code, detail }: ErrorFacts): string {
  const sentence = SENTENCES[code];
  if (sentence !== undefined) return sentence;
  if (detail === "Not Found") return "There is nothing at this address.";
  return /[.!?…]$/.test(detail) ? detail : `${detail}.`;
}
