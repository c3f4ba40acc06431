import { readFile, writeFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { defaultTextOf, flagOf, OPTION_KEYS, optionSpec, variableOf } from "../src/config/options.js";

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
    return [`\`${flag}\``, `\`${variableOf(key)}\``, `\`${key}\``, defaultCell(defaultTextOf(key)), summary];
  });
  const lists = [
    [
      "`[ID=]LOCATION…`",
      "`ZPUBLISH_DATASETS`",
      "`datasets`",
      "",
      "Datasets, or folders of them; those of all places add up. Variable: with commas",
    ],
    ["", "", "`collections`", "", "Folders of datasets, by name"],
    [
      "`--concat <dimension>`",
      "`ZPUBLISH_CONCAT`",
      "in `datasets`",
      "",
      "Makes one dataset of the files of each pattern or folder, along a dimension",
    ],
    [
      "`--stack <dimension>`",
      "`ZPUBLISH_STACK`",
      "in `datasets`",
      "",
      "The same along a new dimension, with one step per file",
    ],
    [
      "`--plugin <plugin>`",
      "`ZPUBLISH_PLUGIN`",
      "`plugins`",
      "the built-in ones",
      "Loads a plugin: `NAME`, `MODULE` or `NAME=MODULE`",
    ],
    ["`--no-plugin <name>`", "`ZPUBLISH_NO_PLUGIN`", "`plugins`", "", "Leaves out a plugin"],
    ["`--config <file>`", "`ZPUBLISH_CONFIG`", "", "", "JSON file with any of these options"],
  ];
  return [
    ["flag", "variable", "in the file", "default", "meaning"],
    ["---", "---", "---", "---", "---"],
    ...rows,
    ...lists,
  ]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
}

function defaultCell(text: string): string {
  return text === "" ? "none" : /[ ~]/.test(text) ? text : `\`${text}\``;
}

/** Returns a document with its table of options renewed; undefined if it has no place for one. */
export function withOptionTable(text: string): string | undefined {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END, begin);
  if (begin === -1 || end === -1) return undefined;
  return `${text.slice(0, begin + BEGIN.length)}\n${optionTable()}\n${text.slice(end)}`;
}

if (process.argv[1] !== undefined && pathToFileURL(process.argv[1]).href === import.meta.url) {
  const file = process.argv[2] ?? OPTION_DOCUMENT;
  const renewed = withOptionTable(await readFile(file, "utf8"));
  if (renewed === undefined) throw new Error(`expected ${BEGIN} and ${END} in ${file}, found none`);
  await writeFile(file, renewed);
}
