import type { DatasetSnapshot } from "../../../src/dataset/dataset.js";
import type { PreviewService } from "../../../src/pages/preview-service.js";
import { type FakeGroup, fakeSnapshot, fakeType } from "./fake-snapshot.js";

const BLOSC = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };

/** A flat dataset like the first one of xarray's tutorial, in reanalysis size. */
export function airTemperature(): DatasetSnapshot {
  return fakeSnapshot(
    "air",
    {
      attrs: {
        Conventions: "COARDS",
        title: "4x daily NMC reanalysis (1948)",
        description:
          "Data is from NMC initialized reanalysis\n(4x/day).  These are the 0.9950 sigma level values.",
        platform: "Model",
        references: "http://www.esrl.noaa.gov/psd/data/gridded/data.ncep.reanalysis.html",
        history: `${"created by the reanalysis, regridded, packed, "
          .repeat(14)
          .trim()}\nfixed by hand <script>alert("x")</script>`,
      },
      variables: {
        time: {
          dims: ["time"],
          shape: [2920],
          type: fakeType("f", 4),
          attrs: {
            standard_name: "time",
            long_name: "Time",
            units: "hours since 1800-01-01",
            calendar: "standard",
          },
          compressor: BLOSC,
        },
        lat: {
          dims: ["lat"],
          shape: [25],
          attrs: { standard_name: "latitude", long_name: "Latitude", units: "degrees_north", axis: "Y" },
          compressor: BLOSC,
        },
        lon: {
          dims: ["lon"],
          shape: [53],
          attrs: { standard_name: "longitude", long_name: "Longitude", units: "degrees_east", axis: "X" },
          compressor: BLOSC,
        },
        land_mask: {
          dims: ["lat", "lon"],
          shape: [25, 53],
          type: fakeType("b", 1),
          coordinate: true,
          attrs: { long_name: "Land sea mask" },
          compressor: BLOSC,
        },
        air: {
          dims: ["time", "lat", "lon"],
          shape: [2920, 25, 53],
          chunks: [365, 25, 27],
          type: fakeType("i", 2),
          compressor: BLOSC,
          attrs: {
            long_name: "4xDaily Air temperature at sigma level 995",
            units: "degK",
            precision: 2,
            actual_range: [185.16, 322.1],
            scale_factor: 0.01,
          },
        },
        precipitation_rate_at_surface_since_previous_postprocessing: {
          dims: ["time", "lat", "lon"],
          shape: [2920, 25, 53],
          chunks: [1, 25, 53],
          kind: "rechunk",
          compressor: { id: "zstd", level: 3 },
          filters: [{ id: "shuffle", elementsize: 4 }],
          attrs: { long_name: "Precipitation rate", units: "kg m-2 s-1" },
        },
        crs: {
          dims: [],
          shape: [],
          type: fakeType("i", 8),
          attrs: { grid_mapping_name: "latitude_longitude", semi_major_axis: 6378137 },
        },
      },
    },
    {
      refused: [
        {
          path: "cloud_top",
          reason: "codec 'jpeg2k' is unknown, and chunks were asked for in another shape than stored",
        },
      ],
    },
  );
}

/** A tree of models, each with runs in two resolutions. */
export function climateTree(): DatasetSnapshot {
  const run = (step: number): FakeGroup => ({
    attrs: { resolution: `${step} degree`, source: "spectral model" },
    variables: {
      time: {
        dims: ["time"],
        shape: [1200],
        type: fakeType("i", 8),
        attrs: { units: "days since 1850-01-01", calendar: "noleap" },
      },
      lat: { dims: ["lat"], shape: [180 / step], type: fakeType("f", 8) },
      lon: { dims: ["lon"], shape: [360 / step], type: fakeType("f", 8) },
      tas: {
        dims: ["time", "lat", "lon"],
        shape: [1200, 180 / step, 360 / step],
        chunks: [12, 90 / step, 90 / step],
        attrs: { long_name: "Near-surface air temperature", units: "K" },
        compressor: BLOSC,
      },
      pr: {
        dims: ["time", "lat", "lon"],
        shape: [1200, 180 / step, 360 / step],
        chunks: [120, 45, 60],
        kind: "recompress",
        attrs: { long_name: "Precipitation", units: "mm/day" },
        compressor: BLOSC,
      },
    },
  });
  const model = (): FakeGroup => ({
    groups: { coarse: run(2), fine: run(1) },
    attrs: { institution: "Example Institute" },
  });
  return fakeSnapshot("climate", {
    attrs: { title: "Two models, each at two resolutions", license: "CC-BY-4.0" },
    variables: { station: { dims: ["station"], shape: [4], type: fakeType("U", 20) } },
    groups: { "model-a": model(), "model b": model() },
  });
}

const FIRST_VALUES: Readonly<Record<string, readonly [readonly string[], readonly string[]]>> = {
  time: [
    ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "2013-01-01T12:00:00"],
    ["2014-12-31T12:00:00", "2014-12-31T18:00:00"],
  ],
  lat: [
    ["75.0", "72.5", "70.0", "67.5", "65.0"],
    ["20.0", "17.5", "15.0"],
  ],
  lon: [
    ["200.0", "202.5", "205.0", "207.5"],
    ["325.0", "327.5", "330.0"],
  ],
  land_mask: [
    ["False", "False", "True"],
    ["False", "True"],
  ],
  station: [["'Abisko'", "'Ny-Ålesund'", "'طهران'", "'Zürich'"], []],
};

/** First values of the samples' coordinates. */
export const samplePreviews: PreviewService["values"] = async ({ variable }) => {
  const values = FIRST_VALUES[variable.name];
  return values === undefined ? undefined : { first: values[0], last: values[1] };
};
