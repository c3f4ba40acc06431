import { formatByteSize } from "../config/byte-size.js";
import type { StoredJoin } from "../zarr/stored-tree.js";
import { countOf, formatCodec, formatShape, printable } from "./format-text.js";
import type { InspectedGroup, InspectedLevel, InspectedVariable, Inspection } from "./inspect.js";

const HEAD = ["variable", "type", "dimensions", "chunks", "codecs", "size", "served"] as const;

/** Writes an inspection as aligned text, one line per variable. */
export function formatInspection(inspection: Inspection): string {
  const { location, format, join, groups, refused, warnings, overviews, stores = [] } = inspection;
  const rows = groups.map(({ variables }) => variables.map(formatVariable));
  const widths = columnWidths([HEAD, ...rows.flat()]);
  const lines = [format === null ? printable(location) : printable(`${location}: ${format}`), ""];
  if (join !== null) lines.push(...formatJoin(join), "");
  groups.forEach((group, index) => {
    lines.push(...formatGroup(group, rows[index] as readonly (readonly string[])[], widths), "");
  });
  for (const { path, reason } of refused) lines.push(`refused: ${printable(path)}: ${printable(reason)}`);
  for (const warning of warnings) lines.push(`warning: ${printable(warning)}`);
  if (refused.length + warnings.length > 0) lines.push("");
  lines.push(summaryOf(groups, refused.length));
  if (overviews.length > 1) lines.push(overviewsOf(overviews));
  for (const { store, requests, retries, receivedBytes, seconds } of stores)
    lines.push(
      `${printable(store)}: ${countOf(requests, "request")}, ${retries} of them again, ${formatByteSize(receivedBytes)}, ${seconds} s`,
    );
  return `${lines.join("\n")}\n`;
}

function formatGroup(
  { path, attrs }: InspectedGroup,
  rows: readonly (readonly string[])[],
  widths: readonly number[],
): string[] {
  const attributes = Object.keys(attrs).length;
  const title = attributes === 0 ? path : `${path}  (${countOf(attributes, "attribute")})`;
  const table = rows.length === 0 ? [] : [HEAD, ...rows];
  return [printable(title), ...table.map((row) => `  ${alignRow(row, widths)}`)];
}

/** Files that are shown at the beginning and at the end. */
const SHOWN_PARTS = 4;

/** Lists which file gives which steps: the first ones and the last ones. */
function formatJoin({ kind, dimension, parts }: StoredJoin): string[] {
  const steps = parts.reduce((sum, { length }) => sum + length, 0);
  const how = kind === "concat" ? "one behind the other along" : "one step each along";
  const rest = parts.length - 2 * SHOWN_PARTS;
  const rows = parts.map(({ name, start, length }) => [stepsOf(start, length), name] as const);
  const isCut = rest > 1;
  const shown = isCut ? [...rows.slice(0, SHOWN_PARTS), ...rows.slice(-SHOWN_PARTS)] : rows;
  const width = Math.max("steps".length, ...shown.map(([text]) => text.length));
  const lines = [["steps", "file"] as const, ...shown].map(([text, name]) =>
    printable(`  ${text.padEnd(width)}  ${name}`),
  );
  if (isCut) lines.splice(1 + SHOWN_PARTS, 0, `  … ${rest} more`);
  const files = new Set(parts.map(({ name }) => name)).size;
  return [printable(`${countOf(files, "file")} ${how} ${dimension}, ${countOf(steps, "step")}`), ...lines];
}

/** Writes the steps that a file gives: `0–30`, `5`, or `none` if others give all of its steps. */
function stepsOf(start: number, length: number): string {
  if (length === 0) return "none";
  return length === 1 ? String(start) : `${start}–${start + length - 1}`;
}

function formatVariable(variable: InspectedVariable): readonly string[] {
  const { name, dtype, dims, shape, storedChunks, shards, codecs, byteLength, served, reason, way, zarr3 } =
    variable;
  const remarks = [reason, way].filter((remark) => remark !== null);
  return [
    name,
    dtype,
    `(${dims.map((dim, axis) => `${dim}: ${shape[axis]}`).join(", ")})`,
    shards === null
      ? formatShape(storedChunks)
      : `${formatShape(storedChunks)} in shards ${formatShape(shards)}`,
    codecs.map(formatCodec).join(" → ") || "none",
    byteLength === null ? "unknown" : formatByteSize(byteLength),
    `${remarks.length === 0 ? served : `${served} (${remarks.join("; ")})`}${IN_V3[zarr3 ?? "none"]}`,
  ].map(printable);
}

/** Remarks about Zarr v3. */
const IN_V3 = { chunks: "", files: "; in v3 as stored", none: "; not in v3" } as const;

function summaryOf(groups: readonly InspectedGroup[], refused: number): string {
  const variables = groups.flatMap((group) => group.variables);
  const passthrough = variables.filter(({ served }) => served === "passthrough").length;
  const byteLength = variables.reduce((sum, variable) => sum + (variable.byteLength ?? 0), 0);
  return [
    `${countOf(groups.length, "group")}, ${countOf(variables.length, "variable")}, ${formatByteSize(byteLength)}:`,
    `${passthrough} passthrough, ${variables.length - passthrough} transcoded, ${refused} refused`,
  ].join(" ");
}

/** Lists the levels that overviews would have: `0/t2m (721, 1440) 4 MiB → 1/t2m (361, 720) 1 MiB`. */
function overviewsOf(levels: readonly InspectedLevel[]): string {
  const texts = levels.map(
    ({ path, shape, byteLength }) => `${path} ${formatShape(shape)} ${formatByteSize(byteLength)}`,
  );
  return printable(`overviews, if they are asked for: ${texts.join(" → ")}`);
}

function columnWidths(rows: readonly (readonly string[])[]): number[] {
  return HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)));
}

function alignRow(row: readonly string[], widths: readonly number[]): string {
  return row
    .map((cell, column) => cell.padEnd(widths[column] as number))
    .join("  ")
    .trimEnd();
}
