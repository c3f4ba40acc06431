import type { CodeAxis } from "../../src/usage/selection-code.js";

/** The second of two times. */
export const TIME: CodeAxis = {
  dim: "time",
  length: 2,
  part: 1,
  coordinate: { dates: ["2013-01-01T00:00:00", "2013-01-01T06:00:00"] },
};

/** Some latitudes from 75 to 15. */
export const LAT: CodeAxis = {
  dim: "lat",
  length: 25,
  part: [[2, 10]],
  coordinate: { numbers: Array.from({ length: 25 }, (_, index) => 75 - 2.5 * index) },
};
