import t from "tap";
import { createRestartPolicy } from "../../src/processes/start-processes.js";

t.test("the first end is followed by a start at once, further ones later and later", async (t) => {
  const policy = createRestartPolicy(() => 0);
  const delays = Array.from({ length: 10 }, () => policy.delayMs());
  t.strictSame(delays, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000]);
  t.throws(() => policy.delayMs(), /a server process has ended 11 times within 60 seconds/);
});

t.test("ends that are long ago do not count", async (t) => {
  let time = 0;
  const policy = createRestartPolicy(() => time);
  for (let index = 0; index < 30; index++) {
    t.equal(policy.delayMs(), 0);
    time += 60_001;
  }
});
