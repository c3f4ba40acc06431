import t from "tap";
import { createRefreshThrottle, type RefreshTarget } from "../../src/dataset/dataset-handle.js";
import { until } from "../support/servers/process-table.js";

/** A dataset whose refreshes end when the test says so. */
function createTarget() {
  const ends: (() => void)[] = [];
  let refreshing: Promise<void> | undefined;
  let begun = 0;
  let hasFailed = false;
  const target: RefreshTarget = {
    name: "dataset 'd': its source",
    refresh() {
      refreshing ??= new Promise<void>((resolve) => {
        begun++;
        ends.push(() => {
          refreshing = undefined;
          resolve();
        });
      });
      return refreshing;
    },
    isRefreshing: () => refreshing !== undefined,
    hasFailed: () => hasFailed,
  };
  return {
    target,
    begun: () => begun,
    fail: () => {
      hasFailed = true;
    },
    /** Ends a refresh as soon as one is under way. */
    async end() {
      await until(() => ends.length > 0);
      ends.shift()?.();
    },
  };
}

t.test("requests before a refresh begins share it; later ones wait for another", async (t) => {
  const { target, begun, end } = createTarget();
  const throttle = createRefreshThrottle(target);
  const done: string[] = [];
  const ask = (name: string) => void throttle.refresh().then(() => done.push(name));
  for (const name of ["a", "b"]) ask(name);
  await until(() => begun() === 1);
  for (const name of ["c", "d"]) ask(name);
  await end();
  await until(() => begun() === 2);
  t.same(done, ["a", "b"], "that refresh may miss what was written since");
  await end();
  await until(() => done.length === 4);
  t.equal(begun(), 2);
});

t.test("a refresh that is under way is waited for, and another made", async (t) => {
  const { target, begun, end } = createTarget();
  const throttle = createRefreshThrottle(target);
  void target.refresh();
  let isDone = false;
  const asked = throttle.refresh().then(() => {
    isDone = true;
  });
  await end();
  await until(() => begun() === 2);
  t.notOk(isDone);
  await end();
  await asked;
});

t.test("a refresh that fails is an error", async (t) => {
  const { target, end, fail } = createTarget();
  const asked = createRefreshThrottle(target).refresh();
  fail();
  const rejected = t.rejects(asked, {
    code: "source-unreadable",
    message: /^dataset 'd': its source .* cannot be read$/,
  });
  await end();
  await rejected;
});

t.test("refreshes in a row leave time between them", async (t) => {
  let refreshes = 0;
  const throttle = createRefreshThrottle({
    name: "dataset 'd': its source",
    refresh: () =>
      new Promise((resolve) => {
        refreshes++;
        setTimeout(resolve, 100);
      }),
    isRefreshing: () => false,
    hasFailed: () => false,
  });
  const beganMs = performance.now();
  for (let i = 0; i < 3; i += 1) await throttle.refresh();
  t.equal(refreshes, 3);
  t.ok(performance.now() - beganMs >= 1_050, "three refreshes of 100 ms, and two pauses four times as long");
});
