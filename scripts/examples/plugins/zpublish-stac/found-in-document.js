/** Media types of assets that zpublish can open, without parameters. */
const MEDIA_TYPES = new Set([
  ...["application/vnd+zarr", "application/vnd.zarr", "application/x-zarr"],
  ...["application/netcdf", "application/x-netcdf", "application/vnd.netcdf"],
  ...["application/x-hdf5", "application/hdf5", "application/vnd.hdfgroup.hdf5"],
  ...["image/tiff", "image/vnd.stac.geotiff"],
]);

/** Protocols of assets. */
const PROTOCOLS = new Set(["file:", "http:", "https:", "s3:"]);

/**
 * Something that cannot be published.
 * @typedef {object} Problem
 * @property {string} name
 * @property {string} reason
 */

/**
 * What a document has.
 * @typedef {object} Found
 * @property {[id: string, location: string][]} datasets
 * @property {string[]} links URLs of child catalogues, collections and items.
 * @property {Problem[]} problems
 */

/**
 * Finds datasets and links in a document.
 * @param {Record<string, any>} document
 * @param {string} url Its own.
 * @returns {Found}
 */
export function foundIn(document, url) {
  /** @type {Problem[]} */
  const problems = [];
  return { datasets: datasetsOf(document, url, problems), links: linksOf(document, url, problems), problems };
}

/**
 * Returns the locations that an item or a collection publishes, by id.
 * @param {Record<string, any>} document
 * @param {string} url Its own.
 * @param {Problem[]} problems
 * @returns {[id: string, location: string][]}
 */
function datasetsOf({ id, type, collection, assets }, url, problems) {
  if (assets === undefined || (type !== "Feature" && type !== "Collection")) return [];
  const names = type === "Feature" && collection !== undefined ? [collection, id] : [id];
  for (const name of names) {
    if (typeof name === "string" && name !== "" && !/[/~]/.test(name)) continue;
    problems.push({
      name: url,
      reason: `expected ids without "/" and "~", received ${JSON.stringify(name)}`,
    });
    return [];
  }
  /** @type {[id: string, location: string][]} */
  const found = [];
  for (const [key, asset] of Object.entries(assets)) {
    const [mediaType = ""] = String(asset?.type ?? "").split(";");
    if (!MEDIA_TYPES.has(mediaType.trim().toLowerCase())) continue;
    const location = resolveHref(asset.href, url, PROTOCOLS);
    if (location !== undefined) found.push([key, location]);
    else problems.push({ name: `${url} (asset ${key})`, reason: refusedHref(asset.href, url) });
  }
  const [only] = found;
  if (only !== undefined && found.length === 1) return [[names.join("~"), only[1]]];
  return found.map(([key, location]) => [[...names, key].join("~"), location]);
}

/**
 * Returns the URLs that links lead to.
 * @param {Record<string, any>} document
 * @param {string} url Its own.
 * @param {Problem[]} problems
 * @returns {string[]}
 */
function linksOf({ links }, url, problems) {
  if (!Array.isArray(links)) return [];
  return links.flatMap((link) => {
    if (link?.rel !== "child" && link?.rel !== "item") return [];
    const found = resolveHref(link.href, url, new Set(["file:", "http:", "https:"]));
    if (found !== undefined) return [found];
    problems.push({ name: `${url} (link ${link.rel})`, reason: refusedHref(link.href, url) });
    return [];
  });
}

/**
 * Resolves an `href`; undefined if it leads to what may not be read. A catalogue on the web cannot name files of this machine.
 * @param {unknown} href
 * @param {string} base
 * @param {ReadonlySet<string>} protocols
 */
function resolveHref(href, base, protocols) {
  if (typeof href !== "string" || !URL.canParse(href, base)) return undefined;
  const url = new URL(href, base);
  url.hash = "";
  const isAllowed = protocols.has(url.protocol) && (url.protocol !== "file:" || base.startsWith("file:"));
  return isAllowed ? url.href : undefined;
}

/**
 * Says why an `href` is refused.
 * @param {unknown} href
 * @param {string} base
 */
function refusedHref(href, base) {
  const files = base.startsWith("file:") ? "a path, " : "";
  return `expected ${files}an http: or https: URL, or that of an asset on S3, received ${JSON.stringify(href)}`;
}
