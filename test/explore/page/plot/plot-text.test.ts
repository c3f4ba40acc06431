import t from "tap";
import { packingOf } from "../../../../src/cf/packing.js";
import {
  createPlotAxis,
  placeText,
  type SeriesPlace,
  seriesSummary,
  valueText,
} from "../../../../src/explore/page/plot/plot-axis.js";
import { histogramCsv, seriesCsv } from "../../../../src/explore/page/plot/save-csv.js";
import type { AxisValues, VariableDescription } from "../../../../src/explore/protocol.js";
import type { JsonObject } from "../../../../src/json/json-value.js";
import { parseDataType } from "../../../../src/model/data-type.js";

function variableOf(dtype: string, attrs: JsonObject = {}): VariableDescription {
  return {
    path: "air",
    name: "air",
    dims: ["time", "lat", "station"],
    shape: [3, 2, 2],
    chunkShape: [3, 2, 2],
    dataType: parseDataType(dtype),
    attrs,
    packing: packingOf(attrs),
    title: "air",
    units: typeof attrs.units === "string" && !attrs.units.includes("since") ? attrs.units : undefined,
    isCoordinate: false,
    isCategorical: false,
    form: "image",
    axes: [
      { dim: "time", length: 3, role: "T", coordinate: "time", isLatitude: false, isLongitude: false },
      { dim: "lat", length: 2, role: "Y", coordinate: "lat", isLatitude: true, isLongitude: false },
      {
        dim: "station",
        length: 2,
        role: undefined,
        coordinate: undefined,
        isLatitude: false,
        isLongitude: false,
      },
    ],
    plane: { y: 1, x: 2 },
    curvilinear: undefined,
    levels: [],
    problem: undefined,
  };
}

const NO_VALUES: AxisValues = {
  numbers: undefined,
  texts: undefined,
  bounds: undefined,
  units: undefined,
  calendar: undefined,
};

const VALUES: readonly AxisValues[] = [
  {
    ...NO_VALUES,
    numbers: Float64Array.of(58, 59, 60),
    texts: ["2001-02-28T12:00:00", "2001-02-29T12:00:00", "2001-02-30T12:00:00"],
    calendar: "360_day",
  },
  { ...NO_VALUES, numbers: Float64Array.of(Math.fround(0.1), -45.5), units: "degrees_north" },
  NO_VALUES,
];

function placeOf(variable: VariableDescription, along: number, at: readonly number[]): SeriesPlace {
  const axis = createPlotAxis(variable.axes[along]!, VALUES[along] as AxisValues);
  return { variable, values: VALUES, at, along, axis, onGrid: undefined };
}

t.test("a series is saved with dates of its calendar, units, and its place", async (t) => {
  const place = placeOf(variableOf("<f4", { units: "degK" }), 0, [2, 0, 1]);
  t.equal(
    seriesCsv(place, Float64Array.of(Math.fround(281.3), Number.NaN, -1)),
    `time,air [degK],lat [degrees_north],station
2001-02-28T12:00:00,281.3,0.1,1
2001-02-29T12:00:00,,0.1,1
2001-02-30T12:00:00,-1,0.1,1
`.replaceAll("\n", "\r\n"),
  );
  t.equal(placeText(place), "0.1°N, station 1");
});

t.test("packed values and axes without coordinates are saved as they are shown", async (t) => {
  const packed = variableOf("<i2", { scale_factor: 0.01, add_offset: 273.15 });
  const place = placeOf(packed, 2, [1, 1, 0]);
  t.equal(
    seriesCsv(place, Float64Array.of(2815 * 0.01 + 273.15, 273.15)),
    "station,air,time,lat [degrees_north]\r\n0,301.3,2001-02-29T12:00:00,-45.5\r\n1,273.15,2001-02-29T12:00:00,-45.5\r\n",
  );
  t.equal(placeText(place), "2001-02-29 12:00, 45.5°S");
});

t.test("a place on a curvilinear grid has its latitude and longitude", async (t) => {
  const onGrid = { latitude: 47.5, longitude: 8.25 };
  const place = { ...placeOf(variableOf("<f4"), 0, [0, 1, 0]), onGrid };
  t.equal(placeText(place), "45.5°S, station 0, 47.500°N, 8.250°E");
  t.match(
    seriesCsv(place, Float64Array.of(1, 2, 3)),
    "station,latitude [degrees_north],longitude [degrees_east]\r\n2001-02-28T12:00:00,1,-45.5,0,47.5,8.25\r\n",
  );
});

t.test("values are written with the digits of their type", async (t) => {
  const float = variableOf("<f4", { units: "K" });
  t.equal(valueText(Math.fround(0.1), float), "0.1 K");
  t.equal(valueText(null, float), "missing");
  t.equal(valueText(3.5, variableOf("<f8", { units: "days since 2000-01-01" })), "2000-01-04T12:00:00");
});

t.test("a summary says how many values there are, from least to greatest", async (t) => {
  const variable = variableOf("<f4", { units: "K" });
  t.equal(seriesSummary(variable, [3.25, null, 1, 1234.5678]), "4 values from 1 K to 1234.6 K, 1 missing");
  t.equal(seriesSummary(variable, [null]), "1 values, all missing");
});

t.test("a histogram is saved with the bounds of its bins", async (t) => {
  const found = {
    kind: "range",
    range: undefined,
    least: 0,
    greatest: 0.3,
    bins: [4, 0, 1],
    count: 5,
    missing: 0,
  } as const;
  t.equal(
    histogramCsv(variableOf("<f4", { units: "K" }), found),
    "air from [K],air to [K],count\r\n0,0.1,4\r\n0.1,0.2,0\r\n0.2,0.3,1\r\n",
  );
});
