import {
  type ArrayView,
  type MapExtent,
  type MapPlace,
  variableFacts,
  WEB_MERCATOR,
  xmlText,
} from "../../plugin-api.js";
import { MAX_PIXELS, STYLE_NAMES, type WmsVersion } from "./parse-wms-query.js";
import { dimensionsOf, extentOfDimension } from "./wms-dimensions.js";

/** A variable that has maps. */
export interface WmsLayer {
  readonly array: ArrayView;
  readonly place: MapPlace;
}

/** Stands for the URL of the service in capabilities that are made once for all addresses. Texts in XML have no such character. */
export const URL_MARK = "\ufffe";

/** Pixels of a legend. */
export const LEGEND = { width: 256, height: 16 };

/** Formats of the answers to operations. */
export const WMS_FORMATS = {
  GetMap: ["image/png"],
  GetFeatureInfo: ["application/json", "text/plain"],
  GetLegendGraphic: ["image/png"],
} as const;

/** Content types by version: of capabilities and of exceptions. */
export const WMS_TYPES = {
  "1.3.0": { capabilities: "text/xml", exception: "text/xml" },
  "1.1.1": { capabilities: "application/vnd.ogc.wms_xml", exception: "application/vnd.ogc.se_xml" },
} as const satisfies Record<WmsVersion, object>;

const XML = '<?xml version="1.0" encoding="UTF-8"?>\n';

/** Writes the capabilities of a dataset (OGC 06-042, section 7.2; 01-068r3, section 7.1), layer by layer. */
export function* writeCapabilities(
  version: WmsVersion,
  title: string,
  layers: readonly WmsLayer[],
): Generator<string> {
  const isNew = version === "1.3.0";
  const link = linkTo(version, "");
  const operation = (name: string, formats: readonly string[]) =>
    `<${name}>${formats.map((format) => `<Format>${format}</Format>`).join("")}<DCPType><HTTP><Get>${link}</Get></HTTP></DCPType></${name}>\n`;
  const limits = `<LayerLimit>1</LayerLimit><MaxWidth>${MAX_PIXELS}</MaxWidth><MaxHeight>${MAX_PIXELS}</MaxHeight>`;
  yield XML;
  yield isNew
    ? '<WMS_Capabilities version="1.3.0" xmlns="http://www.opengis.net/wms" xmlns:xlink="http://www.w3.org/1999/xlink">\n'
    : '<!DOCTYPE WMT_MS_Capabilities SYSTEM "http://schemas.opengis.net/wms/1.1.1/WMS_MS_Capabilities.dtd">\n<WMT_MS_Capabilities version="1.1.1">\n';
  yield `<Service><Name>${isNew ? "WMS" : "OGC:WMS"}</Name><Title>${xmlText(title)}</Title>${link}${isNew ? limits : ""}</Service>\n`;
  yield "<Capability><Request>\n";
  yield operation("GetCapabilities", [WMS_TYPES[version].capabilities]);
  yield operation("GetMap", WMS_FORMATS.GetMap);
  yield operation("GetFeatureInfo", WMS_FORMATS.GetFeatureInfo);
  yield `</Request><Exception><Format>${isNew ? "XML" : WMS_TYPES[version].exception}</Format></Exception>\n`;
  const crs = isNew ? "CRS" : "SRS";
  // Version 1.1.1 has no CRS:84: its EPSG:4326 is the same.
  const systems = ["EPSG:4326", ...(isNew ? ["CRS:84"] : []), "EPSG:3857"];
  yield `<Layer><Title>${xmlText(title)}</Title>${systems.map((name) => `<${crs}>${name}</${crs}>`).join("")}\n`;
  for (const layer of layers) yield writeLayer(version, layer);
  yield `</Layer></Capability>\n</${isNew ? "WMS" : "WMT_MS"}_Capabilities>\n`;
}

/** Writes a link to the service. Version 1.1.1 declares the prefix in each, as its DTD has it. */
function linkTo(version: WmsVersion, query: string): string {
  const declared = version === "1.3.0" ? "" : ' xmlns:xlink="http://www.w3.org/1999/xlink"';
  return `<OnlineResource${declared} xlink:type="simple" xlink:href="${URL_MARK}${query}"/>`;
}

function writeLayer(version: WmsVersion, { array: { variable }, place }: WmsLayer): string {
  const { unit } = variableFacts(variable.attrs);
  const about = unit === undefined ? place.title : `${place.title} (${unit})`;
  const abstract = `<Abstract>${xmlText(about)}</Abstract>`;
  return `<Layer queryable="1"><Name>${xmlText(variable.path)}</Name><Title>${xmlText(place.title)}</Title>${abstract}
${writeBoxes(version, place.extent!)}
${dimensionsOf(place)
  .map((dimension) => {
    const { default: first, text, isNearest } = extentOfDimension(dimension);
    const { calendar, units = "" } = dimension.axis;
    const declared = `<Dimension name="${xmlText(dimension.name)}" units="${calendar === undefined ? xmlText(units) : "ISO8601"}"`;
    const values = `default="${xmlText(first)}"${isNearest ? ' nearestValue="1"' : ""}>${xmlText(text)}`;
    if (version === "1.3.0") return `${declared} ${values}</Dimension>\n`;
    return `${declared}/>\n<Extent name="${xmlText(dimension.name)}" ${values}</Extent>\n`;
  })
  .sort()
  .join("")}${writeStyles(version, variable.path, place)}</Layer>\n`;
}

/** Writes where a layer lies, in each system. */
function writeBoxes(version: WmsVersion, [west, south, east, north]: MapExtent): string {
  // Degrees east of the date line would be those of a second turn.
  const [left, right] = east > 180 ? [-180, 180] : [west, east];
  const box = (crs: string, [minx, miny, maxx, maxy]: MapExtent) =>
    `<BoundingBox ${version === "1.3.0" ? "CRS" : "SRS"}="${crs}" minx="${minx}" miny="${miny}" maxx="${maxx}" maxy="${maxy}"/>`;
  const mercator = box("EPSG:3857", [
    metresEast(left),
    metresNorth(south),
    metresEast(right),
    metresNorth(north),
  ]);
  if (version === "1.1.1") {
    const latLon = `<LatLonBoundingBox minx="${left}" miny="${south}" maxx="${right}" maxy="${north}"/>`;
    return `${latLon}${box("EPSG:4326", [left, south, right, north])}${mercator}`;
  }
  const sides = { westBound: left, eastBound: right, southBound: south, northBound: north };
  const geographic = Object.entries(sides).map(([side, value]) => {
    const name = side + (side.startsWith("west") || side.startsWith("east") ? "Longitude" : "Latitude");
    return `<${name}>${value}</${name}>`;
  });
  const boxes = [
    `<EX_GeographicBoundingBox>${geographic.join("")}</EX_GeographicBoundingBox>`,
    box("CRS:84", [left, south, right, north]),
    box("EPSG:4326", [south, left, north, right]),
    mercator,
  ];
  return boxes.join("");
}

function metresEast(longitude: number): number {
  return WEB_MERCATOR.radius * longitude * (Math.PI / 180);
}

function metresNorth(latitude: number): number {
  const bounded = Math.min(Math.max(latitude, -WEB_MERCATOR.latitude), WEB_MERCATOR.latitude);
  return WEB_MERCATOR.radius * Math.asinh(Math.tan(bounded * (Math.PI / 180)));
}

/** Writes the styles of a layer, each with its legend. */
function writeStyles(version: WmsVersion, path: string, { categories }: MapPlace): string {
  const layer = encodeURIComponent(path);
  return STYLE_NAMES[categories === undefined ? "numbers" : "categories"]
    .map((style) => {
      const query = xmlText(`request=GetLegendGraphic&layer=${layer}&style=${style}`);
      const legend = `<LegendURL width="${LEGEND.width}" height="${LEGEND.height}"><Format>image/png</Format>${linkTo(version, query)}</LegendURL>`;
      return `<Style><Name>${style}</Name><Title>${style}</Title>${legend}</Style>\n`;
    })
    .join("");
}

/** Writes an exception (OGC 06-042, section 6.11; 01-068r3, annex A.3). @param code Undefined if it has none. */
export function writeException(
  version: WmsVersion,
  code: string | undefined,
  locator: string | undefined,
  message: string,
): string {
  const attribute = (name: string, value: string | undefined) =>
    value === undefined ? "" : ` ${name}="${xmlText(value)}"`;
  const root = `ServiceExceptionReport version="${version}"${version === "1.3.0" ? ' xmlns="http://www.opengis.net/ogc"' : ""}`;
  return `${XML}<${root}>\n<ServiceException${attribute("code", code)}${attribute("locator", locator)}>${xmlText(message)}</ServiceException>\n</ServiceExceptionReport>\n`;
}
