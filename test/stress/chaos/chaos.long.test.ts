import t from "tap";
import { killChildren } from "../../../bench/children.js";
import { makeDirectory } from "../../support/write-store.js";
import { chaosText, isClean, runChaos } from "./chaos.js";

t.setTimeout(600_000);

t.test("the program comes through half a minute of everything", async (t) => {
  t.teardown(killChildren);
  const folder = await makeDirectory(t);
  const report = await runChaos({ onProgress: () => {}, seed: 4, seconds: 25, processes: 2, folder });
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
