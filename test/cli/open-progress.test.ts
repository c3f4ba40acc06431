import t from "tap";
import { createProgressReporter } from "../../src/cli/open-progress.js";

function setUp(isTTY: boolean) {
  const written: string[] = [];
  const logged: unknown[] = [];
  let time = 0;
  const reporter = createProgressReporter(
    { isTTY, write: (text) => written.push(text) },
    { info: ((fields: unknown) => logged.push(fields)) as never },
    () => time,
  );
  const update = (at: number, opened: number): void => {
    time = at;
    reporter.update({ opened, total: 9, id: "big", arrays: 12 });
  };
  return { written, logged, reporter, update };
}

t.test("a terminal gets one line that changes, is overwritten by the log, and is removed at the end", (t) => {
  const { written, logged, reporter, update } = setUp(true);
  update(100, 1);
  t.strictSame(written, [], "a quick start stays quiet");
  update(500, 2);
  update(550, 3);
  update(700, 4);
  reporter.finish();
  reporter.finish();
  t.strictSame(written, [
    "\x1b[Kopening datasets: 2 of 9 open, big: 12 arrays read\r",
    "\x1b[Kopening datasets: 4 of 9 open, big: 12 arrays read\r",
    "\x1b[K",
  ]);
  t.strictSame(logged, []);
  t.end();
});

t.test("elsewhere the log gets a line every few seconds", (t) => {
  const { written, logged, reporter, update } = setUp(false);
  for (let at = 0; at <= 7_000; at += 500) update(at, at);
  reporter.finish();
  t.strictSame(written, []);
  t.strictSame(logged, [
    { opened: 3_000, total: 9, id: "big", arrays: 12 },
    { opened: 6_000, total: 9, id: "big", arrays: 12 },
  ]);
  t.end();
});
