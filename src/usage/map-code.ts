import { type CodeVariable, quoted, shellWord } from "./selection-code.js";
import { encodedText, parametersOf } from "./selection-url.js";

/** Where maps of a dataset are. */
export interface MapServices {
  /** URL of the plugin `tiles`: `https://data.example/datasets/air/tiles`; undefined if the server has none. */
  readonly tiles: string | undefined;
  /** URL of the plugin `wms`; undefined if the server has none. */
  readonly wms: string | undefined;
}

/** Code that shows a variable in a map, or an address for programs that ask for one. */
export interface MapCode {
  readonly client: "Tiles" | "WMS" | "OpenLayers" | "MapLibre" | "Leaflet" | "QGIS" | "GDAL map";
  readonly language: "text" | "javascript" | "python" | "shell";
  readonly code: string;
}

/** Returns code that shows a variable in maps. @param variable At its axes of one cell; axes of several are those of the map. */
export function mapCode({ tiles, wms }: MapServices, { path, axes }: CodeVariable): readonly MapCode[] {
  return [
    ...(tiles === undefined ? [] : tilesCode(tiles, { path, axes })),
    ...(wms === undefined ? [] : wmsCode(wms, path)),
  ];
}

function tilesCode(tiles: string, { path, axes }: CodeVariable): MapCode[] {
  const steps = axes.filter(({ part }) => typeof part === "number").flatMap(parametersOf);
  const query = steps.map((pair) => pair.map(encodedText).join("=")).join("&");
  const folder = `${tiles}/${encodedText(path)}`;
  const urlOf = (file: string) => `${folder}/${file}${query === "" ? "" : `?${query}`}`;
  const url = urlOf("{z}/{x}/{y}.png");
  const described = quoted(urlOf("tilejson.json"));
  const name = quoted(path);
  return [
    { client: "Tiles", language: "text", code: url },
    {
      client: "OpenLayers",
      language: "javascript",
      code: `import TileLayer from "ol/layer/Tile";
import TileJSON from "ol/source/TileJSON";

map.addLayer(new TileLayer({ source: new TileJSON({ url: ${described}, crossOrigin: "anonymous" }) }));`,
    },
    {
      client: "MapLibre",
      language: "javascript",
      code: `map.addSource(${name}, { type: "raster", url: ${described}, tileSize: 256 });
map.addLayer({ id: ${name}, type: "raster", source: ${name} });`,
    },
    { client: "Leaflet", language: "javascript", code: `L.tileLayer(${quoted(url)}).addTo(map);` },
  ];
}

function wmsCode(wms: string, path: string): MapCode[] {
  const layer = encodedText(path);
  const source = `crs=EPSG:3857&format=image/png&layers=${layer}&styles=&url=${wms}`;
  const file = `${path.replace(/[^A-Za-z0-9]+/g, "_")}.png`;
  const asked = `${wms}?SERVICE=WMS&VERSION=1.3.0&REQUEST=GetMap&LAYERS=${layer}&CRS=CRS:84&BBOX=-180,-90,180,90&FORMAT=image/png`;
  return [
    { client: "WMS", language: "text", code: `${wms}?SERVICE=WMS&REQUEST=GetCapabilities` },
    {
      client: "QGIS",
      language: "python",
      code: `iface.addRasterLayer(${quoted(source)}, ${quoted(path)}, "wms")`,
    },
    {
      client: "GDAL map",
      language: "shell",
      code: `gdal_translate ${shellWord(`WMS:${asked}`)} -outsize 1440 720 ${file}`,
    },
  ];
}
