import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readdir, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import { OPTION_DOCUMENT, withOptionTable } from "../../scripts/option-table.js";
import { runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

let made = 0;
const countMade = () => void made++;
const demo = await makeDemoData(join(await makeDirectory(t), "demo"), countMade);

t.test("demonstration data is made once, and again when it is not what this version makes", async (t) => {
  const { air } = demo;
  const directory = dirname(air);
  const madeAt = (await stat(join(air, ".zmetadata"))).mtimeMs;
  t.equal(made, 1, "it is told");
  await makeDemoData(directory, countMade);
  t.same([(await stat(join(air, ".zmetadata"))).mtimeMs, made], [madeAt, 1], "reused");
  await writeFile(join(directory, "version.txt"), "another\n");
  await makeDemoData(directory, countMade);
  t.not((await stat(join(air, ".zmetadata"))).mtimeMs, madeAt, "made anew");
  t.equal(made, 2);
  t.strictSame((await readdir(join(directory, ".."))).sort(), ["demo"], "nothing unfinished is left");
});

let root = dirname(fileURLToPath(import.meta.url));
while (!existsSync(join(root, "package.json"))) root = dirname(root);

const rooms = readdirSync(join(root, "src"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/${name}/README.md`);
const documents = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...["bench/README.md", "scripts/deploy/README.md", "test/clients/README.md"],
  ...rooms.filter((file) => existsSync(join(root, file))),
];

/** Anchors of a document's headings, as GitHub makes them. */
function anchorsOf(file: string): string[] {
  return Array.from(readFileSync(file, "utf8").matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

for (const document of documents) {
  t.test(`links of ${document} lead somewhere`, async (t) => {
    const text = readFileSync(join(root, document), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? join(root, document) : resolve(root, dirname(document), path);
      t.ok(existsSync(file), target);
      if (anchor !== undefined) t.ok(anchorsOf(file).includes(anchor), target);
    }
  });
}

t.test("files, folders and commands that CONTRIBUTING names exist", async (t) => {
  const text = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
  const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly scripts: Readonly<Record<string, string>>;
  };
  for (const [, name = ""] of text.matchAll(/\bnpm run\s+([a-z]+(?::[a-z]+)*)/g))
    t.ok(name in scripts, `npm run ${name}`);
  const folders = ["src", "workers", "test", "scripts", "bench"];
  const paths = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true }).map(
      (entry) => `/${relative(root, join(entry.parentPath, entry.name))}${entry.isDirectory() ? "/" : ""}`,
    ),
  );
  const isThere = (name: string) =>
    folders.includes(name.replace("/", "")) || paths.some((path) => path.endsWith(`/${name}`));
  for (const [, name = ""] of text.matchAll(/`((?:[\w-]+\/)*(?:[\w-]+\/|[\w-][\w.-]*\.(?:c?ts|sh)))`/g))
    if (!/^(?:dist|node_modules)\//.test(name)) t.ok(isThere(name), name);
  for (const entry of readdirSync(join(root, "src"), { withFileTypes: true }))
    if (entry.isDirectory()) t.match(text, `\`src/${entry.name}/\``, "it has a row");
});

t.test("the document of options has the table that the program has", async (t) => {
  const text = readFileSync(join(root, OPTION_DOCUMENT), "utf8");
  t.equal(withOptionTable(text), text, "npm run readme:options renews it");
});

t.test("the package has what its documents lead to, and the examples for operators", async (t) => {
  const args = ["pack", "--dry-run", "--json", "--ignore-scripts"];
  const { stdout, stderr } = spawnSync("npm", args, { cwd: root, encoding: "utf8" });
  const [packed] = JSON.parse(stdout || "[]") as [{ readonly files: readonly { readonly path: string }[] }?];
  const files = packed?.files.map(({ path }) => path) ?? [];
  t.ok(files.includes("README.md"), stderr);
  for (const example of ["zpublish.service", "nginx.conf", "haproxy.cfg"])
    t.ok(files.includes(`scripts/deploy/${example}`), example);
  for (const document of files.filter((file) => file.endsWith(".md")))
    for (const [, target = ""] of readFileSync(join(root, document), "utf8").matchAll(/\]\(([^)\s#]+)/g)) {
      if (/^https?:/.test(target)) continue;
      const path = join(dirname(document), target);
      const isThere = files.some((file) => file === path || file.startsWith(`${path.replace(/\/$/, "")}/`));
      t.ok(isThere, `${document}: ${target}`);
    }
});

const RUN_TESTS = fileURLToPath(new URL("../../scripts/run-tests.js", import.meta.url));

const FILES = {
  "good.test.js": `console.log("    ok 1 - a detail\\nok 1 - fine\\n# { total: 2, pass: 2 }")`,
  "skipped.test.js": `console.log("ok 1 - absent # SKIP no client\\n# { total: 1, skip: 1 }")`,
  "failing.test.js": `console.log("ok 1 - fine\\nnot ok 2 - wrong\\n# { total: 2, pass: 1, fail: 1 }"); process.exit(1)`,
  "silent.test.js": "",
  "broken.test.js": `throw new Error("not even begun")`,
  "slow.long.test.js": `console.log("ok 1 - slow\\n# { total: 1, pass: 1 }")`,
};

t.test("a ring passes if each of its files ends well and says how many tests it ran", async (t) => {
  const directory = await makeDirectory(t);
  // Those that set a limit run alone.
  const alone = "const t = { setTimeout() {} };\nt.setTimeout(1_000);\n";
  await writeFiles(
    directory,
    Object.fromEntries(Object.entries(FILES).map(([name, content]) => [name, alone + content])),
  );
  const cases: [args: string[], code: number, sum: string][] = [
    [
      ["good", "skipped"].map((name) => join(directory, `${name}.test.js`)),
      0,
      "{ total: 3, pass: 2, skip: 1 }",
    ],
    [["--long", directory], 0, "{ total: 1, pass: 1 }"],
    [[directory], 1, "{ total: 5, pass: 3, fail: 3, skip: 1 }"],
    [[join(directory, "silent.test.js")], 1, "{ total: 0, fail: 1 }"],
  ];
  for (const [args, code, sum] of cases) {
    const run = runScript(RUN_TESTS, args);
    t.equal(await run.ended, code, args.join(" "));
    t.match(run.stdout(), `# ${sum}\n`);
    if (args[0] !== directory) continue;
    t.match(run.stdout(), "not ok 2 - wrong");
    t.match(run.stdout(), "not even begun");
    t.match(run.stdout(), "ok 1 - absent # SKIP no client");
    t.notMatch(run.stdout(), "fine");
  }
});

t.test("quick files share a process, and fail if one of them fails or has no tests", async (t) => {
  const fileOf = (body: string) =>
    `import t from "tap";\nt.test("one of ${process.pid}", async (t) => ${body});\n`;
  // In the checkout, where tap is found.
  const directory = t.testdir({
    "a.test.js": fileOf(`t.match(t.testdirName, /a\\.test/)`),
    "b.test.js": fileOf("t.equal(process.argv.length, 2)"),
    "c.test.js": fileOf("t.fail()"),
    "d.test.js": `import "tap";\n`,
  });
  const runFiles = async (...names: readonly string[]) => {
    const run = runScript(RUN_TESTS, [...names.map((name) => join(directory, `${name}.test.js`))]);
    return { code: await run.ended, stdout: run.stdout() };
  };
  t.match(await runFiles("a", "b"), {
    code: 0,
    stdout: /^ok - \S+a\.test\.js, \S+b\.test\.js #(.|\n)*total: 2, pass: 2 /,
  });
  t.match(await runFiles("a", "c"), { code: 1, stdout: /^not ok - / });
  t.match(await runFiles("a", "d"), { code: 1, stdout: /d\.test\.js: expected tests, received none/ });
});
