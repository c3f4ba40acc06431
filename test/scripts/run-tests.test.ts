import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

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
  await writeFiles(directory, FILES);
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
