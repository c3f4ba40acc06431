/** Absolute URLs to which a page links or that it names in attributes for its script; and those that it shows, without their queries. */
function urlsOf(html: string, page: string): string[] {
  const links = [...html.matchAll(/ (href|src|data-[a-z0-9-]+)="([^"]*)"/g)]
    .filter(([, name]) => !/^data-(?:dataset|group|title|max-selection)$/.test(name as string))
    .map(([, , link]) => new URL((link as string).replaceAll("&amp;", "&"), page).href.replace(/#.*/, ""));
  const shown = [...html.matchAll(/https?:\/\/[^\s"<&'?]+/g)].map(([url]) => url);
  return [...links.filter((link) => !link.startsWith("data:")), ...shown];
}

/**
 * Follows all that pages link to or show, from the home page on.
 * @param home Address of the home page, with a query if there is a token.
 * @param headers Headers of a proxy, whose address for `home` is `publicUrl`.
 * @returns Status by path below the home page, and all URLs that lead elsewhere.
 */
export async function crawl(home: string, publicUrl?: string, headers: Record<string, string> = {}) {
  const { search } = new URL(home);
  const base = home.slice(0, home.length - search.length);
  const visited = new Map<string, number>();
  const elsewhere: string[] = [];
  const waiting = [home];
  const localOf = (link: string) => (publicUrl === undefined ? link : link.replace(publicUrl, base));
  for (let url = waiting.pop(); url !== undefined; url = waiting.pop()) {
    const path = url.slice(base.length);
    if (visited.has(path)) continue;
    const answer = await fetch(url, { headers, redirect: "manual" });
    const location = answer.headers.get("location");
    visited.set(path, location === null ? answer.status : 200);
    // The origin of a path is the proxy's.
    if (location !== null) waiting.push(localOf(new URL(location, publicUrl ?? url).href));
    const text = await answer.text();
    const isPage = answer.headers.get("content-type")?.startsWith("text/html") ?? false;
    // What listings and the page to try the API link to has no token: it is sent in other ways.
    if (!isPage || (search !== "" && /<title>(?:Index of|API)/.test(text))) continue;
    for (const found of urlsOf(text, url)) {
      const local = localOf(found);
      // The vocabulary of what pages say to search engines.
      if (found === "https://schema.org/") continue;
      // Of these, programs ask for a part, by path or query.
      if (/\/(?:tiles|wms)$/.test(found)) continue;
      if (!local.startsWith(base)) elsewhere.push(`${path}: ${found}`);
      else waiting.push(local.includes("?") ? local : local + search);
    }
  }
  return { visited, elsewhere };
}
