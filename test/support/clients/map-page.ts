import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Test } from "tap";
import { PACKAGE_ROOT } from "./client-generation.js";

/** Libraries of maps. */
export const MAP_LIBRARIES = ["OpenLayers", "MapLibre", "Leaflet"] as const;

/** A page: the name of a library, or of one that asks a WMS. */
export type MapPage =
  | (typeof MAP_LIBRARIES)[number]
  | ("OpenLayers-ImageWMS" | "OpenLayers-TileWMS" | "MapLibre-WMS" | "Leaflet-WMS");

/** Scripts that show one variable in the element `map`, from longitude 0 and latitude 0 at zoom 1, and set the title when it is drawn. */
const SCRIPTS: Readonly<Record<MapPage, string>> = {
  OpenLayers: `
    const source = new ol.source.TileJSON({ url: described, crossOrigin: "anonymous", interpolate: false });
    const layers = [new ol.layer.Tile({ source })];
    // OpenLayers' zoom 1 is that of tiles of 256 pixels.
    const map = new ol.Map({ target: "map", controls: [], layers, view: new ol.View({ center: [0, 0], zoom: 1 }) });
    source.on("change", () => source.getState() === "ready" && map.once("rendercomplete", ready));`,
  MapLibre: `
    const { Map } = await import("/modules/maplibre-gl/dist/maplibre-gl.mjs");
    const sources = { shown: { type: "raster", url: described, tileSize: 256 } };
    const layers = [{ id: "shown", type: "raster", source: "shown", paint: { "raster-fade-duration": 0, "raster-resampling": "nearest" } }];
    const style = { version: 8, sources, layers };
    const map = new Map({ container: "map", style, center: [0, 0], zoom: 0, attributionControl: false, fadeDuration: 0 });
    map.once("idle", ready);`,
  Leaflet: `
    const { tiles } = await (await fetch(described)).json();
    const map = L.map("map", { center: [0, 0], zoom: 1, zoomControl: false, attributionControl: false, fadeAnimation: false });
    L.tileLayer(tiles[0]).on("load", ready).addTo(map);`,
  "OpenLayers-ImageWMS": openLayersWms("ol.layer.Image", "ol.source.ImageWMS"),
  "OpenLayers-TileWMS": openLayersWms("ol.layer.Tile", "ol.source.TileWMS"),
  "MapLibre-WMS": `
    const { Map } = await import("/modules/maplibre-gl/dist/maplibre-gl.mjs");
    const query = new URLSearchParams({ ...parameters, REQUEST: "GetMap", CRS: crs, FORMAT: "image/png", WIDTH: 256, HEIGHT: 256 });
    const sources = { shown: { type: "raster", tiles: [\`\${described}?\${query}&BBOX={bbox-epsg-3857}\`], tileSize: 256 } };
    const layers = [{ id: "shown", type: "raster", source: "shown", paint: { "raster-fade-duration": 0, "raster-resampling": "nearest" } }];
    const style = { version: 8, sources, layers };
    const map = new Map({ container: "map", style, center: [0, 0], zoom: 0, attributionControl: false, fadeDuration: 0 });
    map.once("idle", ready);`,
  "Leaflet-WMS": `
    const named = Object.entries(parameters).map(([name, value]) => [name.toLowerCase(), value]);
    const map = L.map("map", { center: [0, 0], zoom: 1, zoomControl: false, attributionControl: false, fadeAnimation: false });
    L.tileLayer.wms(described, { ...Object.fromEntries(named), format: "image/png" }).on("load", ready).addTo(map);`,
};

function openLayersWms(layer: string, source: string): string {
  return `
    const settings = { url: described, params: parameters, ratio: 1, crossOrigin: "anonymous", interpolate: false };
    const layers = [new ${layer}({ source: new ${source}(settings) })];
    const view = new ol.View({ projection: crs, center: [0, 0], resolution: Number(resolution) });
    new ol.Map({ target: "map", controls: [], layers, view }).once("rendercomplete", ready);`;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
};

function pageOf(script: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>waiting</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/modules/leaflet/dist/leaflet.css">
<script src="/modules/ol/dist/ol.js"></script>
<script src="/modules/leaflet/dist/leaflet.js"></script>
<style>body { margin: 0; background: #fff } #map { width: 512px; height: 512px; background: #fff }</style>
</head>
<body><div id="map"></div>
<script type="module">
const { tiles: described, crs, resolution, ...parameters } = Object.fromEntries(new URLSearchParams(location.search));
const ready = () => requestAnimationFrame(() => { document.title = "ready"; });
${script}
</script></body>
</html>`;
}

/**
 * Serves a page for each library, from an origin of its own: `/OpenLayers?tiles=…` with the URL of a TileJSON;
 * `/OpenLayers-ImageWMS?tiles=…&crs=…&resolution=…&LAYERS=…` with that of a WMS, the system, its units per pixel, and parameters.
 */
export async function startMapPages(t: Pick<Test, "teardown">): Promise<string> {
  const server = createServer(async (request, response) => {
    const path = new URL(request.url ?? "/", "http://page").pathname;
    const script = Object.entries(SCRIPTS).find(([name]) => path === `/${name}`)?.[1];
    if (script !== undefined) {
      response.writeHead(200, { "content-type": "text/html" }).end(pageOf(script));
      return;
    }
    try {
      const body = await readFile(join(PACKAGE_ROOT, "node_modules", path.replace(/^\/modules\//, "")));
      response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain" }).end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
