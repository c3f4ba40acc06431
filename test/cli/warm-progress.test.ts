import t from "tap";
import { createWarmReporter, describeResult } from "../../src/cli/warm-progress.js";
import type { WarmCounts } from "../../src/warm/warm-chunks.js";

function setUp(isTTY: boolean, columns?: number) {
  const written: string[] = [];
  const logged: unknown[] = [];
  let time = 0;
  const reporter = createWarmReporter(
    { isTTY, ...(columns && { columns }), write: (text) => written.push(text) },
    { info: ((fields: unknown) => logged.push(fields)) as never },
    () => time,
  );
  const update = (at: number, made: number, more: Partial<WarmCounts> = {}): void => {
    time = at;
    const none = { cached: 0, absent: 0, stored: 0, failed: 0 };
    reporter.update({ total: 2_000, made, madeBytes: made * 2 ** 20, ...none, ...more });
  };
  return { written, logged, reporter, update };
}

t.test("a terminal gets a bar with chunks, speed and time left, which is removed at the end", async (t) => {
  const { written, logged, reporter, update } = setUp(true);
  update(100, 1);
  t.strictSame(written, [], "not at once");
  update(1_000, 10);
  update(1_050, 11);
  update(10_000, 1_000, { failed: 2 });
  update(10_001, 2_000);
  reporter.clear();
  reporter.clear();
  t.strictSame(written, [
    "\x1b[K░░░░░░░░░░░░░░░░░░░░ 0 %  10 of 2,000 chunks  10 MiB/s  3 min left\r",
    "\x1b[K█████████░░░░░░░░░░ 50 %  1,002 of 2,000 chunks  2 failed  100 MiB/s  10 s left\r",
    "\x1b[K████████████████████ 100 %  2,000 of 2,000 chunks  200.0 MiB/s  0 s left\r",
    "\x1b[K",
  ]);
  t.strictSame(logged, []);
});

t.test("the bar is no longer than a line", async (t) => {
  for (const [columns, line] of [
    [60, "░░░░░░░░░░░░░ 0 %  10 of 2,000 chunks  10 MiB/s  3 min left"],
    [30, " 0 %  10 of 2,000 chunks  10 "],
  ] as const) {
    const { written, update } = setUp(true, columns);
    update(1_000, 10);
    t.strictSame(written, [`\x1b[K${line}\r`]);
    t.ok(line.length < columns);
  }
});

t.test("the speed is that of the last seconds", async (t) => {
  const { written, update } = setUp(true);
  for (let second = 1; second <= 40; second++)
    update(second * 1_000, second < 20 ? 10 * second : 190 + second);
  t.match(written.at(-1), /1 MiB\/s/);
});

t.test("elsewhere the log gets a line every few seconds", async (t) => {
  const { written, logged, reporter, update } = setUp(false);
  for (let at = 0; at <= 11_000; at += 500) update(at, at / 10);
  reporter.clear();
  t.strictSame(written, []);
  t.equal(logged.length, 2);
  t.match(logged[0], { total: 2_000, done: 500, made: 500, bytesPerSecond: 100 * 2 ** 20, secondsLeft: 15 });
});

t.test("the result says what became of the chunks", async (t) => {
  const counts = {
    total: 1_500,
    made: 1_000,
    cached: 400,
    absent: 50,
    stored: 7,
    failed: 3,
    madeBytes: 2 ** 30,
  };
  t.equal(
    describeResult({ ...counts, failures: [], stopped: "cache-full" }, 64, 12),
    `1,460 of 1,500 chunks in 1 min:
  made              1,000 (1 GiB, 16 MiB/s)
  already there     400
  absent            50
  served as stored  7 (not cached)
  failed            3
  removed           12 older chunks, to make room
`,
  );
});
