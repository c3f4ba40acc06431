import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { zarray } from "../support/write-store.js";

/** Reads a document by its path from the nearest package.json. */
function readDocument(file: string): string {
  let directory = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(directory, "package.json"))) directory = dirname(directory);
  return readFileSync(join(directory, file), "utf8");
}

/** Returns the first block of a language below a heading or sentence. */
function exampleOf(after: string, language: string, file = "README.md"): string {
  const text = readDocument(file);
  const from = text.indexOf(after);
  const found = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(text.slice(from))?.[1];
  if (from === -1 || found === undefined) throw new Error(`expected a ${language} block below "${after}"`);
  return found;
}

const ZARRAY = { ...zarray, shape: [1], chunks: [1] };
const store = () => ({ ".zgroup": '{"zarr_format": 2}', a: { ".zarray": JSON.stringify(ZARRAY) } });
/** Writes the stores that the examples name. */
const data = () => ({ data: { "air.zarr": store(), "sst.zarr": store() } });

t.test("the library example of the README runs as printed", async (t) => {
  const cwd = t.testdir(data());
  const example = exampleOf("## Library", "ts")
    .replace('"zpublish"', JSON.stringify(new URL("../../src/index.js", import.meta.url).href))
    .replace("// …", 'console.log(await (await fetch(url + "/datasets")).text());');
  writeFileSync(join(cwd, "example.mjs"), example);
  const run = runScript(join(cwd, "example.mjs"), [], { cwd });
  t.equal(await run.ended, 0);
  t.equal(run.stdout(), '["memory","air","sst"]\n');
  t.equal(run.stderr(), "");
});

t.test("the plugin example of the README runs as printed, beside a package of any type", async (t) => {
  const code = exampleOf("## Plugins", "js");
  const file = /^\/\/ (\S+)\n/.exec(code)?.[1] as string;
  const [command] = exampleOf("// count-plugin.mjs", "sh").split("\n") as [string];
  const args = command.split(" ").slice(1);
  t.ok(args.includes(`./${file}`));
  for (const type of ["module", "commonjs"]) {
    const cwd = t.testdir({ ...data(), [file]: code, "package.json": JSON.stringify({ type }) });
    const run = runScript(PROGRAM, [...args, "--port", "0", "--no-cache"], { cwd });
    await run.says("ready on");
    const url = / on (\S+)/.exec(run.stdout())?.[1];
    t.equal(await (await fetch(`${url}/datasets/air/count`)).text(), "1", type);
    t.equal((await fetch(`${url}/datasets/none/count`)).status, 404);
    t.equal((await fetch(`${url}/versions`)).status, 404);
    t.match(await (await fetch(`${url}/openapi.json`)).text(), "/datasets/{dataset_id}/count");
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  }
});

const CONFIGURATIONS = [
  { file: "README.md", after: "The file also says", ids: ["air", "big"] },
  { file: "src/config/README.md", after: "## Datasets in the file", ids: ["air", "big"] },
  { file: "scripts/deploy/README.md", after: "On the instances", ids: ["air"] },
  { file: "src/plugins/README.md", after: "# Plugins", ids: [] },
];

for (const { file, after, ids } of CONFIGURATIONS) {
  t.test(`the configuration example of ${file} is one`, async (t) => {
    const cwd = t.testdir({ "zpublish.json": exampleOf(after, "json", file) });
    const config = resolveConfig({ argv: ["--config", "zpublish.json"], env: {}, cwd });
    t.same(
      config.datasets.map(({ id }) => id),
      ids,
    );
  });
}
