import { readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const BUILD = fileURLToPath(new URL("../../../scripts/build.mjs", import.meta.url));

/** A script in place of a compiler: it notes its call, and writes what others expect of it. */
const says = (name: string, outputs: Readonly<Record<string, string>>) => `
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
appendFileSync("calls.txt", "${name} " + process.argv.slice(2).join(" ") + "\\n");
for (const [file, text] of Object.entries(${JSON.stringify(outputs)})) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}
`;

const BUNDLER = says("bundle", {
  "dist/src/explore/assets/assets.json": "{}",
  "dist/explore-inputs.json": JSON.stringify(["src/explore/main.tsx"]),
});

const PROJECT = {
  "package.json": '{"type": "module"}',
  "package-lock.json": "{}",
  "tsconfig.json": "{}",
  "scripts/explore/build-explore.ts": "1",
  "src/main.ts": "1",
  "src/explore/main.tsx": "1",
  "src/codec/kernel/assembly/index.ts": "1",
  "node_modules/typescript-native/bin/tsc": says("tsc", {
    "dist/src/zpublish.cjs": "",
    "dist/explore.tsbuildinfo": "",
    "dist/scripts/explore/build-explore.js": BUNDLER,
  }),
  "node_modules/typescript-native/package.json": '{"type": "module"}',
  "node_modules/assemblyscript/package.json": '{"type": "module"}',
  "node_modules/assemblyscript/bin/asc.js": says("asc", { "dist/src/codec/kernel/kernel.wasm": "" }),
};

const CODE = "tsc -p tsconfig.json";
const TYPES = "tsc -p src/explore/tsconfig.json";
const KERNEL = "asc --config src/codec/kernel/asconfig.json --outFile dist/src/codec/kernel/kernel.wasm";
const ALL = [CODE, TYPES, KERNEL, "bundle "];

t.test("a build does what its inputs ask for, and says so", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { ...PROJECT, "scripts/build.mjs": await readFile(BUILD) });
  const build = async (...steps: string[]) => {
    await rm(join(directory, "calls.txt"), { force: true });
    const run = runScript(join(directory, "scripts/build.mjs"), steps);
    const code = await run.ended;
    const calls = await readFile(join(directory, "calls.txt"), "utf8").catch(() => "");
    return { code, calls: calls.split("\n").filter((call) => call !== ""), said: run.stderr() };
  };
  const touch = (file: string) => utimes(join(directory, file), 1, Math.random() * 1e9);

  const first = await build();
  t.strictSame([first.code, first.calls.toSorted()], [0, ALL.toSorted()], first.said);
  t.match(first.said, /^Compiling TypeScript …\n[\s\S]*^Compiled TypeScript in \d+\.\d s$/m);
  t.match(await build(), { code: 0, calls: [], said: "Nothing has changed since the last build.\n" });

  const changes: readonly (readonly [string, readonly string[]])[] = [
    ["src/main.ts", [CODE, TYPES]],
    ["src/explore/main.tsx", [CODE, TYPES, "bundle "]],
    ["src/codec/kernel/assembly/index.ts", [CODE, TYPES, KERNEL]],
    ["scripts/explore/build-explore.ts", [CODE, "bundle "]],
    ["package-lock.json", ALL],
  ];
  for (const [file, calls] of changes) {
    await touch(file);
    t.strictSame((await build()).calls.toSorted(), calls.toSorted(), file);
  }
  await rm(join(directory, "src/main.ts"));
  t.strictSame((await build()).calls.toSorted(), [TYPES, CODE], "a file that is gone");
  await rm(join(directory, "dist/src/codec/kernel/kernel.wasm"));
  t.strictSame((await build()).calls, [KERNEL], "an output that is gone");
  t.strictSame((await build("kernel")).calls, [KERNEL], "a step that is named");

  await touch("src/explore/main.tsx");
  await writeFile(join(directory, "node_modules/typescript-native/bin/tsc"), "process.exit(2)");
  t.match(await build(), { code: 1, calls: [] });
  await writeFile(
    join(directory, "node_modules/typescript-native/bin/tsc"),
    PROJECT["node_modules/typescript-native/bin/tsc"],
  );
  t.strictSame((await build()).calls.toSorted(), ["bundle ", TYPES, CODE], "what failed is done again");
});
