import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { OPTION_DOCUMENT, optionTable, withOptionTable } from "../../scripts/option-table.js";
import { OPTION_KEYS } from "../../src/config/options.js";

t.test("the table has a row for every option", (t) => {
  const lines = optionTable().split("\n");
  t.equal(lines.length, 2 + OPTION_KEYS.length + 7);
  t.ok(
    lines.includes(
      "| `--port <port>` | `ZPUBLISH_PORT` | `port` | `9000` | Port to listen on; 0 picks a free one |",
    ),
  );
  t.ok(
    lines.includes("| `--no-cache` | `ZPUBLISH_CACHE` | `cache` | `true` | Keep encoded chunks on disk |"),
  );
  t.end();
});

t.test("the document of options has the table that the program has", (t) => {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) directory = dirname(directory);
  const text = readFileSync(join(directory, OPTION_DOCUMENT), "utf8");
  t.equal(withOptionTable(text), text, "npm run readme:options renews it");
  t.end();
});
