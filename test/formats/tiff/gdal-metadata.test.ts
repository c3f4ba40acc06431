import t from "tap";
import { runNow } from "../../../src/event-loop/cooperative-task.js";
import { parseFloatText, parseGdalMetadata, tagValue } from "../../../src/formats/tiff/gdal-metadata.js";
import { nodataOf } from "../../../src/formats/tiff/nodata.js";
import type { TiffImage } from "../../../src/formats/tiff/tiff-image.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";

t.test("items belong to the image, to a band, or have a role", async (t) => {
  const xml = `<GDALMetadata>
  <Item name="a">x &amp;lt; y</Item>
  <Item name="b" sample="1">2</Item>
  <Item name="SCALE" sample="0" role="scale">0.5</Item>
  <Item name="hidden" domain="other">1</Item>
  <Item name="COLORINTERP" sample="0" role="colorinterp">Red</Item>
  <Item>nameless</Item>
</GDALMetadata>`;
  const { image, bands, roles } = runNow(parseGdalMetadata(xml));
  t.same([...image], [["a", "x < y"]]);
  t.same([...(bands.get(1) ?? [])], [["b", "2"]]);
  t.same([...roles.keys()], ["scale"]);
  t.equal(bands.size, 1);
});

t.test("texts become the values that rioxarray makes of them", async (t) => {
  const cases: Record<string, string> = {
    "12": "12",
    " 7 ": "7",
    "1_000": "1000",
    "+5": "5",
    "123456789012345678901": "123456789012345678901",
    "1.50": "1.5",
    "2.": "2.0",
    "-1e5": "-100000.0",
    "0x10": '"0x10"',
    "": '""',
    "{1,2.5}": "[1.0,2.5]",
    "{a,1}": '"{a,1}"',
    "2020:01:01": '"2020:01:01"',
  };
  for (const [text, json] of Object.entries(cases)) t.equal(stringifyJson(tagValue(text)), json, text);
  t.equal(parseFloatText("-inf"), Number.NEGATIVE_INFINITY);
  t.equal(parseFloatText("1".repeat(1000)), undefined);
});

t.test("a missing-value mark is an item of the image's type, or none", async (t) => {
  const image = (kind: TiffImage["kind"], itemSize: number, isBigEndian = false) =>
    ({ kind, itemSize, isBigEndian }) as TiffImage;
  const of = (text: string, type: TiffImage) => {
    const found = nodataOf(text, type);
    return found && [stringifyJson(found.json), Buffer.from(found.item).toString("hex")];
  };
  t.same(of("-9999", image("i", 2)), ["-9999", "f1d8"]);
  t.same(of("-9999", image("i", 2, true)), ["-9999", "d8f1"]);
  t.same(of("255.0", image("u", 1)), ["255", "ff"]);
  t.same(of("18446744073709551615", image("u", 8)), ["18446744073709551615", "f".repeat(16)]);
  t.same(of("nan", image("f", 4)), ['"NaN"', "0000c07f"]);
  t.same(of("0.1", image("f", 4)), ["0.10000000149011612", "cdcccc3d"]);
  t.same(of("-inf", image("f", 8)), ['"-Infinity"', "000000000000f0ff"]);
  for (const [text, type] of [
    ["-1", image("u", 1)],
    ["256", image("u", 1)],
    ["1.5", image("u", 2)],
    ["nan", image("i", 2)],
    ["1e300", image("f", 4)],
    ["abc", image("f", 8)],
    ["0", image("c", 8)],
  ] as const) {
    t.equal(nodataOf(text, type), undefined, text);
  }
});
