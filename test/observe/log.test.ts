import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import t from "tap";
import { readableLine } from "../../src/observe/log.js";

const LOG = JSON.stringify(new URL("../../src/observe/log.js", import.meta.url).href);
const TIME = "2026-05-01T12:34:56.789Z";
const clock = new Date(TIME).toTimeString().slice(0, 8);

const LINES: readonly (readonly [fields: object, text: string])[] = [
  [{ level: 30, msg: "ready" }, "info  ready\n"],
  [
    { level: 40, dataset: "air", reason: "it does not exist", count: 3, msg: "dataset skipped" },
    'warn  dataset skipped  dataset=air  reason="it does not exist"  count=3\n',
  ],
  [
    { level: 20, path: "a\x1b[2J\x9b", list: ["x"], msg: "\r\x07" },
    'debug \\x0d\\x07  path=a\\x1b[2J\\x9b  list=["x"]\n',
  ],
  [
    {
      level: 50,
      err: { type: "TypeError", message: "x", stack: "TypeError: x\n    at a.js:1\n" },
      msg: "failed",
    },
    "error failed\n    TypeError: x\n        at a.js:1\n",
  ],
];

t.test("a line is readable on a terminal, and moves no cursor", async (t) => {
  for (const [fields, text] of LINES)
    t.equal(readableLine(JSON.stringify({ time: TIME, ...fields }), false), `${clock} ${text}`);
  const coloured = readableLine(JSON.stringify({ level: 40, time: TIME, msg: "m" }), true);
  t.equal(coloured, `${clock} \x1b[33mwarn \x1b[0m m\n`);
});

t.test(
  "on a terminal lines are readable, elsewhere they are JSON",
  { skip: existsSync("/usr/bin/script") ? false : "needs script of util-linux" },
  async (t) => {
    const source = `import { createLog } from ${LOG}; createLog("info").info({ dataset: "a" }, "hello");`;
    const command = `'${process.execPath}' --input-type=module -e '${source}'`;
    const env = { PATH: process.env.PATH, TERM: "dumb" };
    const options = { env, encoding: "utf8", shell: "/bin/sh" } as const;
    const plain = spawnSync(command, options);
    t.match(JSON.parse(plain.stderr), { level: 30, dataset: "a", msg: "hello" });
    const terminal = spawnSync("/usr/bin/script", ["-qec", command, "/dev/null"], { env, encoding: "utf8" });
    t.match(terminal.stdout, /^\d\d:\d\d:\d\d info {2}hello {2}dataset=a\r\n$/);
  },
);
