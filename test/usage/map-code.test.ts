import t from "tap";
import { mapCode } from "../../src/usage/map-code.js";

t.test("code for maps names the step that is shown, by its label", async (t) => {
  const url = "https://data.example/datasets/air";
  const axes = [
    { dim: "time", length: 2, part: 1, isTime: true, coordinate: { dates: ["2020-01-01", "2020-01-02"] } },
    { dim: "member", length: 3, part: 2 },
    { dim: "lat", length: 4, part: "all" },
    { dim: "lon", length: 8, part: [[0, 2]] },
  ] as const;
  const codes = mapCode({ tiles: `${url}/tiles`, wms: `${url}/wms` }, { path: "a b/t&m", axes });
  const codeOf = (wanted: string) => codes.find(({ client }) => client === wanted)?.code;
  const query = "time=nearest::2020-01-02&isel.member=2";
  t.equal(codeOf("Tiles"), `${url}/tiles/a%20b/t%26m/{z}/{x}/{y}.png?${query}`);
  t.match(codeOf("OpenLayers"), `${url}/tiles/a%20b/t%26m/tilejson.json?${query}`);
  t.match(codeOf("Leaflet"), `L.tileLayer("${codeOf("Tiles")}")`);
  t.match(codeOf("MapLibre"), 'map.addSource("a b/t&m", { type: "raster"');
  t.match(codeOf("QGIS"), `layers=a%20b/t%26m&styles=&url=${url}/wms"`);
  t.match(codeOf("GDAL map"), "-outsize 1440 720 a_b_t_m.png");
  t.same(mapCode({ tiles: undefined, wms: undefined }, { path: "t", axes: [] }), []);
});
