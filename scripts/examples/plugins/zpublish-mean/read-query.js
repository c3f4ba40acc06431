import { ZpublishError } from "zpublish";

/**
 * @import { Variable } from "zpublish"
 */

/**
 * The part of a variable that a request asks for.
 * @typedef {object} Selection
 * @property {number} axis Axis that the mean is taken over.
 * @property {number[]} begin First index of each axis.
 * @property {number[]} end Index behind the last of each axis.
 */

const RANGE = /^(.+):(\d*):(\d*)$/;

/**
 * Reads `dimension` and `isel` of a query.
 * @param {Variable} variable
 * @param {string} query Without the question mark.
 * @returns {Selection}
 * @throws {ZpublishError} `invalid-query`
 */
export function readQuery({ dims, shape }, query) {
  const names = dims.map((name) => `'${name}'`).join(", ");
  const params = new URLSearchParams(query);
  const dimension = params.get("dimension");
  const axis = dims.indexOf(dimension ?? "");
  if (axis === -1) throw refused("dimension", `expected one of ${names}`, dimension);
  const begin = shape.map(() => 0);
  const end = [...shape];
  for (const range of params.getAll("isel")) {
    const [, name = "", from = "", to = ""] = RANGE.exec(range) ?? [];
    const at = dims.indexOf(name);
    const length = shape[at];
    if (length === undefined) throw refused("isel", `expected name:begin:end with a name of ${names}`, range);
    begin[at] = Number(from);
    end[at] = to === "" ? length : Number(to);
    if (begin[at] >= end[at] || end[at] > length)
      throw refused("isel", `expected 0 <= begin < end <= ${length}`, range);
  }
  return { axis, begin, end };
}

/**
 * Makes the error that is answered with 422.
 * @param {string} parameter
 * @param {string} expected
 * @param {string | number | null} received
 */
export function refused(parameter, expected, received) {
  const input = String(received ?? "");
  return new ZpublishError("invalid-query", `${expected}, received '${input}'`, {
    details: { parameter, type: "value_error", input },
  });
}
