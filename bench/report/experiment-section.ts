import type { ExperimentResult, Goal } from "../experiments/experiment.js";
import { markdownTable } from "./markdown-cells.js";

/** An experiment that has been run. */
export interface NamedResult {
  readonly name: string;
  readonly title: string;
  readonly result: ExperimentResult;
}

/** What an experiment has found, as lines of Markdown. */
export function experimentSection({ name, title, result }: NamedResult): string[] {
  const lines = [`## ${name}`, "", `${title.charAt(0).toUpperCase()}${title.slice(1)}.`, ""];
  for (const { title: tableTitle, columns, rows } of result.tables) {
    if (tableTitle !== undefined) lines.push(`${tableTitle}:`, "");
    lines.push(...markdownTable(columns, rows), "");
  }
  for (const file of Object.keys(result.pictures ?? {}))
    lines.push(`![${file.replace(/\.svg$/, "")}](${file})`, "");
  lines.push(...result.notes.map((note) => `- ${note}`), "");
  return lines;
}

/** What was aimed at, and what was had. */
export function goalSection(goals: readonly Goal[]): string[] {
  if (goals.length === 0) return [];
  const rows = goals.map(({ what, expected, measured, isMet }) => [
    what,
    expected,
    measured,
    isMet ? "yes" : "**no**",
  ]);
  return ["## Goals", "", ...markdownTable(["goal", "aim", "measured", "met"], rows), ""];
}
