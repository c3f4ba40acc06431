import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import {
  defaultTextOf,
  environmentVariableOf,
  flagOf,
  OPTION_KEYS,
  OTHER_OPTIONS,
  optionSpec,
} from "../src/config/options.js";

/** The lines before and after the table in the document. */
const BEGIN = "<!-- options: made by npm run readme:options -->";
const END = "<!-- /options -->";

/** The document with the table, from the top of the repository. */
export const OPTION_DOCUMENT = "src/config/README.md";

/** Every option of `serve` as a Markdown table, from the one place that defines them. */
export function optionTable(): string {
  const rows = OPTION_KEYS.map((key) => {
    const { placeholder, summary } = optionSpec(key);
    const isOn = defaultTextOf(key) === "true";
    const flag =
      placeholder === null
        ? `${isOn ? "--no-" : "--"}${flagOf(key).slice(2)}`
        : `${flagOf(key)} <${placeholder}>`;
    return [
      `\`${flag}\``,
      `\`${environmentVariableOf(key)}\``,
      `\`${key}\``,
      defaultCell(defaultTextOf(key)),
      summary,
    ];
  });
  const lists = Object.entries(OTHER_OPTIONS).map(([key, { flag, inFile, summary }]) => [
    `\`${flag}\``,
    `\`${environmentVariableOf(key)}\``,
    inFile,
    "",
    summary,
  ]);
  const collections = ["", "", "`collections`", "", "Folders of datasets, by name"];
  return [
    ["flag", "variable", "in the file", "default", "meaning"],
    ["---", "---", "---", "---", "---"],
    ...rows,
    ...lists,
    collections,
  ]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
}

function restartSentence(): string {
  const flags = OPTION_KEYS.filter((key) => optionSpec(key).restart).map((key) => `\`${flagOf(key)}\``);
  return `Only a restart can change ${flags.join(", ")}. After HUP they stay as they are, and a warning in the log names them.`;
}

function defaultCell(text: string): string {
  return text === "" ? "none" : /[ ~]/.test(text) ? text : `\`${text}\``;
}

/** Returns a document with its table of options renewed; undefined if it has no place for one. */
export function withOptionTable(text: string): string | undefined {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END, begin);
  if (begin === -1 || end === -1) return undefined;
  return `${text.slice(0, begin + BEGIN.length)}\n${optionTable()}\n\n${restartSentence()}\n${text.slice(end)}`;
}

if (process.argv[1] !== undefined && pathToFileURL(process.argv[1]).href === import.meta.url) {
  const file = process.argv[2] ?? OPTION_DOCUMENT;
  const renewed = withOptionTable(await readFile(file, "utf8"));
  if (renewed === undefined) throw new Error(`expected ${BEGIN} and ${END} in ${file}, found none`);
  await writeFile(file, renewed);
}
