import t from "tap";
import { killChildren } from "../../../bench/children.js";
import { makeDirectory } from "../../support/write-store.js";
import { chaosText, isClean, runChaos } from "./chaos.js";

t.setTimeout(240_000);

const QUIET = { onProgress: () => {} };

t.test("the program comes through half a minute of everything", async (t) => {
  t.teardown(killChildren);
  const folder = await makeDirectory(t);
  const report = await runChaos({ ...QUIET, seed: 4, seconds: 25, processes: 2, folder });
  const text = chaosText(report, 4);
  t.ok(isClean(report), text);
  t.ok(report.tally.requests > 1_000);
  t.ok(report.events.size > 6, "much has happened");
  const happened = [...report.events.keys()];
  t.ok(
    happened.some((name) => name.startsWith("worker killed")),
    "a worker was killed",
    { happened },
  );
  const excused = [...report.tally.excused.keys()];
  t.ok(
    excused.some((reason) => reason.endsWith(": poisonous chunk")),
    "workers died of chunks",
    { excused },
  );
  t.match(text, /wrong bytes 0/);
  t.notMatch(text, /NaN|undefined/);
});

t.test("wrong bytes, leaks, and failures said to be absence are found", async (t) => {
  t.teardown(killChildren);
  const folder = await makeDirectory(t);
  const report = await runChaos({
    ...QUIET,
    seed: 5,
    seconds: 8,
    processes: 1,
    settleMs: 2_000,
    folder,
    only: ["source fails (error)", "rewritten"],
    preload: new URL("chaos-defects.js", import.meta.url).href,
  });
  const text = chaosText(report, 5);
  t.notOk(isClean(report));
  t.ok(report.tally.wrong > 0, "wrong bytes");
  t.match(text, /WRONG: .*(?:item \d+: expected version|other bytes under)/);
  t.match(text, /failed: \/datasets\/flaky\/zarr\/raw\/\d+\.0: 404/);
  t.ok(
    report.failures.some((failure) => /descriptors: expected at most/.test(failure)),
    "leaks",
    { failures: report.failures },
  );
});
