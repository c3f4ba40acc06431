import {
  LEGEND_SIZE,
  type MapExtent,
  type MapPlace,
  variableFacts,
  WEB_MERCATOR,
  xmlText,
} from "../../plugin-api.js";
import { CRS_NAMES, DEFAULT_STYLE, MAX_PIXELS, SCALE_STYLES, type WmsVersion } from "./parse-wms-query.js";
import { dimensionsOf, extentOf, wmsLabel } from "./wms-dimensions.js";

/** Formats of the answers to operations. */
export const WMS_FORMATS = {
  GetMap: ["image/png"],
  GetFeatureInfo: ["application/json", "text/plain"],
} as const;

/** Content types by version: of capabilities and of exceptions. */
export const WMS_TYPES = {
  "1.3.0": { capabilities: "text/xml", exception: "text/xml" },
  "1.1.1": { capabilities: "application/vnd.ogc.wms_xml", exception: "application/vnd.ogc.se_xml" },
} as const satisfies Record<WmsVersion, object>;

const XML = '<?xml version="1.0" encoding="UTF-8"?>\n';
const XLINK = 'xmlns:xlink="http://www.w3.org/1999/xlink"';

/** Layers that are written at a time. */
const LAYERS_PER_PIECE = 64;

/**
 * Writes the capabilities of a dataset (OGC 06-042, section 7.2; 01-068r3, section 7.1) in pieces. Layers inherit the styles of their group,
 * whose legends are alike for all of them.
 * @param url Of the service, with what a query begins with: `https://…/wms?`.
 */
export function* writeCapabilities(
  version: WmsVersion,
  url: string,
  title: string,
  layers: readonly MapPlace[],
): Generator<string> {
  const isNew = version === "1.3.0";
  const link = linkTo(version, url);
  const operation = ([name, formats]: [string, readonly string[]]) =>
    `<${name}>${elements("Format", formats)}<DCPType><HTTP><Get>${link}</Get></HTTP></DCPType></${name}>\n`;
  const { capabilities, exception } = WMS_TYPES[version];
  const operations = Object.entries({ GetCapabilities: [capabilities], ...WMS_FORMATS }).map(operation);
  const limits = `<LayerLimit>1</LayerLimit><MaxWidth>${MAX_PIXELS}</MaxWidth><MaxHeight>${MAX_PIXELS}</MaxHeight>`;
  const root = isNew ? "WMS_Capabilities" : "WMT_MS_Capabilities";
  yield XML;
  yield isNew
    ? `<${root} version="1.3.0" xmlns="http://www.opengis.net/wms" ${XLINK}>\n`
    : `<!DOCTYPE ${root} SYSTEM "http://schemas.opengis.net/wms/1.1.1/WMS_MS_Capabilities.dtd">\n<${root} version="1.1.1">\n`;
  yield `<Service><Name>${isNew ? "WMS" : "OGC:WMS"}</Name>${elements("Title", [title])}${link}${isNew ? limits : ""}</Service>\n`;
  yield `<Capability><Request>\n${operations.join("")}</Request><Exception>${elements("Format", [isNew ? "XML" : exception])}</Exception>\n`;
  yield `<Layer>${elements("Title", [title])}${elements(isNew ? "CRS" : "SRS", CRS_NAMES[version])}\n`;
  const boxes = new Map<string, string>();
  const boxesOf = (extent: MapExtent) => {
    const known = boxes.get(`${extent}`) ?? writeBoxes(version, extent);
    boxes.set(`${extent}`, known);
    return known;
  };
  for (const isCategorical of [false, true]) {
    const members = layers.filter(({ categories }) => (categories !== undefined) === isCategorical);
    if (members.length === 0) continue;
    const styles = isCategorical ? [] : SCALE_STYLES;
    const written = styles.map((style) => writeStyle(version, url, members[0]!, style));
    yield `<Layer><Title>${isCategorical ? "Categories" : "Numbers"}</Title>\n${written.join("")}`;
    for (let at = 0; at < members.length; at += LAYERS_PER_PIECE) {
      const some = members.slice(at, at + LAYERS_PER_PIECE);
      yield some.map((layer) => writeLayer(version, url, layer, boxesOf(layer.extent!))).join("");
    }
    yield "</Layer>\n";
  }
  yield `</Layer></Capability>\n</${root}>\n`;
}

function elements(name: string, texts: readonly string[]): string {
  return texts.map((text) => `<${name}>${xmlText(text)}</${name}>`).join("");
}

/** Writes attributes; those that are undefined are left out. */
function attributes(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined);
  return given.map(([name, value]) => ` ${name}="${xmlText(`${value}`)}"`).join("");
}

/** Writes a link. Version 1.1.1 declares the prefix in each, as its DTD has it. */
function linkTo(version: WmsVersion, url: string): string {
  return `<OnlineResource ${version === "1.3.0" ? "" : `${XLINK} `}xlink:type="simple"${attributes({ "xlink:href": url })}/>`;
}

/** @param boxes Where it lies. */
function writeLayer(version: WmsVersion, url: string, layer: MapPlace, boxes: string): string {
  const { array, title } = layer;
  const { path, attrs } = array.variable;
  const { unit } = variableFacts(attrs);
  const about = unit === undefined ? title : `${title} (${unit})`;
  const names = `${elements("Name", [path])}${elements("Title", [title])}${elements("Abstract", [about])}`;
  return `<Layer queryable="1">${names}
${boxes}
${writeDimensions(version, layer)}${writeStyle(version, url, layer, DEFAULT_STYLE)}</Layer>\n`;
}

/** Writes where a layer lies, in each system. */
function writeBoxes(version: WmsVersion, [west, south, east, north]: MapExtent): string {
  // Degrees east of the date line would be those of a second turn.
  const [left, right] = east > 180 ? [-180, 180] : [west, east];
  const box = (name: string, [minx, miny, maxx, maxy]: MapExtent, system = {}) =>
    `<${name}${attributes({ ...system, minx, miny, maxx, maxy })}/>`;
  const extent = [left, south, right, north] as const;
  const mercator = [...metresOf(left, south), ...metresOf(right, north)] as const;
  if (version === "1.1.1")
    return [
      box("LatLonBoundingBox", extent),
      box("BoundingBox", extent, { SRS: "EPSG:4326" }),
      box("BoundingBox", mercator, { SRS: "EPSG:3857" }),
    ].join("");
  const longitudes = `<westBoundLongitude>${left}</westBoundLongitude><eastBoundLongitude>${right}</eastBoundLongitude>`;
  const latitudes = `<southBoundLatitude>${south}</southBoundLatitude><northBoundLatitude>${north}</northBoundLatitude>`;
  return [
    `<EX_GeographicBoundingBox>${longitudes}${latitudes}</EX_GeographicBoundingBox>`,
    box("BoundingBox", extent, { CRS: "CRS:84" }),
    box("BoundingBox", [south, left, north, right], { CRS: "EPSG:4326" }),
    box("BoundingBox", mercator, { CRS: "EPSG:3857" }),
  ].join("");
}

/** Returns a place in metres of Web Mercator. */
function metresOf(longitude: number, latitude: number): readonly [x: number, y: number] {
  const bounded = Math.min(Math.max(latitude, -WEB_MERCATOR.latitude), WEB_MERCATOR.latitude);
  const [x, y] = [longitude, bounded].map((degrees) => degrees * (Math.PI / 180)) as [number, number];
  return [WEB_MERCATOR.radius * x, WEB_MERCATOR.radius * Math.asinh(Math.tan(y))];
}

/** Writes the dimensions of a layer; in version 1.1.1 their values are elements of their own, after all of them. */
function writeDimensions(version: WmsVersion, place: MapPlace): string {
  const written = dimensionsOf(place).map(({ name, axis, index }) => {
    const { text, isNearest } = extentOf(axis);
    const units = axis.calendar === undefined ? (axis.units ?? "") : "ISO8601";
    const facts = { default: wmsLabel(axis, index), nearestValue: isNearest ? 1 : undefined };
    const values = `${attributes(facts)}>${xmlText(text)}`;
    return [`<Dimension${attributes({ name, units })}`, `<Extent${attributes({ name })}`, values] as const;
  });
  written.sort();
  if (version === "1.3.0")
    return written.map(([dimension, , values]) => `${dimension}${values}</Dimension>\n`).join("");
  const dimensions = written.map(([dimension]) => `${dimension}/>\n`);
  return [...dimensions, ...written.map(([, extent, values]) => `${extent}${values}</Extent>\n`)].join("");
}

function writeStyle(version: WmsVersion, url: string, { array }: MapPlace, style: string): string {
  const layer = encodeURIComponent(array.variable.path);
  const link = linkTo(version, `${url}request=GetLegendGraphic&layer=${layer}&style=${style}`);
  const legend = `<LegendURL${attributes(LEGEND_SIZE)}>${elements("Format", WMS_FORMATS.GetMap)}${link}</LegendURL>`;
  return `<Style><Name>${style}</Name><Title>${style}</Title>${legend}</Style>\n`;
}

/**
 * Writes an exception (OGC 06-042, section 6.11; 01-068r3, annex A.3).
 * @param code Undefined if it has none.
 * @param locator The parameter that is wrong, which version 1.1.1 does not tell.
 */
export function writeException(
  version: WmsVersion,
  code: string | undefined,
  locator: string | undefined,
  message: string,
): string {
  const isNew = version === "1.3.0";
  const facts = attributes({ code, locator: isNew ? locator : undefined });
  return `${XML}<ServiceExceptionReport version="${version}"${isNew ? ' xmlns="http://www.opengis.net/ogc"' : ""}>
<ServiceException${facts}>${xmlText(message)}</ServiceException>\n</ServiceExceptionReport>\n`;
}
