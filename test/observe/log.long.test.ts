import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import t, { type Test } from "tap";

const LOG = JSON.stringify(new URL("../../src/observe/log.js", import.meta.url).href);
const EXIT = JSON.stringify(new URL("../../src/observe/log.js", import.meta.url).href);

/** A program that logs, and whose standard error is not read until a test asks for it. */
function run(t: Test, source: string) {
  const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  t.teardown(() => child.kill("SIGKILL"));
  const exited = once(child, "exit");
  let stdout = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  return {
    exited,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    closeReader: () => child.stderr.destroy(),
    stdout: () => stdout,
    /** Begins to read; all that comes until the end, as lines. */
    async lines(): Promise<{ msg: string; level: number; dropped?: number; n?: number }[]> {
      let stderr = "";
      for await (const text of child.stderr.setEncoding("utf8")) stderr += text;
      return stderr
        .trim()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line));
    },
    async says(text: string): Promise<void> {
      while (!stdout.includes(text)) await once(child.stdout, "data");
    },
  };
}

t.test(
  "a reader that does not read holds the program up for no time, and reads later how much was dropped",
  async (t) => {
    const program = run(
      t,
      `import { createLog, logStats } from ${LOG};
     const log = createLog("info");
     let n = 0;
     function turn() {
       for (let i = 0; i < 200; i++) log.info({ n: n++, filling: "x".repeat(200) }, "line");
       if (n < 20_000) setImmediate(turn);
       else {
         console.log("logged " + logStats.dropped);
         // Until the test reads.
         const wait = setInterval(() => {
           const before = logStats.dropped;
           log.info("the end");
           if (logStats.dropped > before) return;
           clearInterval(wait);
         }, 20);
       }
     }
     turn();`,
    );
    await program.says("logged ");
    const dropped = Number(program.stdout().split(" ")[1]);
    t.ok(dropped > 10_000, `${dropped} lines were dropped`);
    const lines = await program.lines();
    t.strictSame(await program.exited, [0, null]);
    const told = lines.filter(({ dropped }) => dropped !== undefined);
    t.ok(told.length > 0);
    t.ok(told.reduce((sum, { dropped = 0 }) => sum + dropped, 0) >= dropped);
    const numbers = lines.flatMap(({ n }) => (n === undefined ? [] : [n]));
    t.strictSame(
      numbers,
      Array.from({ length: numbers.length }, (_, index) => index),
      "the first ones, each whole",
    );
    t.ok(
      lines.some(({ msg }) => msg === "the end"),
      "and what is logged when it reads again",
    );
  },
);

/** Writes lines of many lengths while its reader falls behind. */
const WRITER = `
  import { createLog } from ${LOG};
  const log = createLog("info");
  let n = 0;
  function turn() {
    for (let i = 0; i < 50; i++) log.info({ n: n++, filling: "x".repeat((n * 37) % 700) }, "line");
    if (n < 4_000) setTimeout(turn, 2);
  }
  turn();
`;
/** Passes on what it reads, slowly. */
const SLOW_READER = `
  for await (const bytes of process.stdin) {
    process.stdout.write(bytes);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
`;

t.test("several processes write whole lines into one pipe", async (t) => {
  const node = `"${process.execPath}" --input-type=module -e`;
  const shell = spawn(
    "sh",
    ["-c", `{ ${node} "$1" & ${node} "$1" & wait; } 2>&1 | ${node} "$2"`, "sh", WRITER, SLOW_READER],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  t.teardown(() => shell.kill("SIGKILL"));
  let text = "";
  for await (const piece of shell.stdout.setEncoding("utf8")) text += piece;
  const lines = text.trim().split("\n");
  const torn = lines.filter((line) => {
    try {
      JSON.parse(line);
      return false;
    } catch {
      return true;
    }
  });
  t.strictSame(torn, []);
  t.ok(lines.length > 1_000, `${lines.length} lines`);
});

t.test("a program ends although its log is not read", async (t) => {
  const program = run(
    t,
    `import { createLog } from ${LOG};
     const log = createLog("info");
     for (let n = 0; n < 5_000; n++) log.info({ filling: "x".repeat(200) }, "line");
     process.exit(3);`,
  );
  t.strictSame(await program.exited, [3, null]);
});

t.test("what is logged before the end is written, at an exit and at an uncaught error", async (t) => {
  for (const [end, last] of [
    ["process.exit(4);", "last"],
    ["throw new Error('out of the blue');", "internal error: out of the blue"],
    ["Promise.reject(new Error('nor this'));", "internal error: nor this"],
    ["", "last"],
  ] as const) {
    const program = run(
      t,
      `import { createLog } from ${LOG};
       import { exitOnUncaught } from ${EXIT};
       const log = createLog("info");
       exitOnUncaught(log);
       for (let n = 0; n < 300; n++) log.info({ n, filling: "x".repeat(100) }, "line");
       log.warn("last");
       ${end}`,
    );
    const lines = await program.lines();
    t.equal(lines.at(-1)?.msg, last);
    t.equal(lines.filter(({ n }) => n !== undefined).length, 300);
    t.strictSame(await program.exited, [end === "" ? 0 : end.includes("exit") ? 4 : 1, null]);
  }
});

t.test("a program whose log cannot be written continues, and ends when it is told to", async (t) => {
  const source = `import { createLog } from ${LOG};
    const log = createLog("info");
    for (let n = 0; n < 100; n++) log.info({ filling: "x".repeat(200) }, "line");
    log.fatal("last");
    process.stdin.once("end", () => process.exit(6)).resume();`;
  const full = openSync("/dev/full", "w");
  for (const stderr of [full, "pipe"] as const) {
    const child = spawn(process.execPath, ["--input-type=module", "-e", source], {
      stdio: ["pipe", "ignore", stderr],
    });
    t.teardown(() => child.kill("SIGKILL"));
    child.stderr?.destroy();
    child.stdin?.end();
    t.strictSame(await once(child, "exit"), [6, null]);
  }
  closeSync(full);
});

t.test("a program continues when the reader of its log is gone", async (t) => {
  const program = run(
    t,
    `import { createLog } from ${LOG};
     const log = createLog("info");
     process.on("SIGUSR2", () => {
       log.info("unread");
       setTimeout(() => { log.info("unread"); console.log("alive"); process.exit(5); }, 20);
     });
     setInterval(() => undefined, 1_000);
     console.log("ready");`,
  );
  await program.says("ready");
  program.closeReader();
  program.kill("SIGUSR2");
  t.strictSame(await program.exited, [5, null]);
  t.match(program.stdout(), "alive");
});
