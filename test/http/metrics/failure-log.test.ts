import { pino } from "pino";
import t from "tap";
import { createFailureLog } from "../../../src/http/request-log.js";

interface Line {
  readonly level: number;
  readonly msg: string;
  readonly path?: string;
  readonly failed?: number;
}

t.test("of many failures, the first ones are logged and the others are counted", async (t) => {
  const lines: Line[] = [];
  let told: () => void = () => undefined;
  const end = new Promise<void>((resolve) => {
    told = resolve;
  });
  const write = (text: string) => {
    const line: Line = JSON.parse(text);
    lines.push(line);
    if (line.failed !== undefined) told();
  };
  const failures = createFailureLog(pino({ base: null }, { write }), 10);
  for (let index = 0; index < 250; index++) failures.note("error", { path: `/${index}` }, `broken ${index}`);
  t.equal(lines.length, 100);
  t.match(lines[99], { level: 50, path: "/99", msg: "broken 99" });
  const alive = setTimeout(() => undefined, 60_000);
  await end;
  clearTimeout(alive);
  t.match(lines[100], { failed: 150, msg: "further requests failed, the last one: broken 249" });
  failures.note("warn", { path: "/next" }, "broken again");
  t.match(lines[101], { level: 40, path: "/next" });
  t.equal(lines.length, 102);
});
