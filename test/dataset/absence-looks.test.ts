import t from "tap";
import { type AbsenceLookTarget, createAbsenceLooks } from "../../src/dataset/absence-looks.js";

/** A dataset whose looks end when they are told to. */
function createTarget() {
  const ends: (() => void)[] = [];
  let looking: Promise<void> | undefined;
  let begun = 0;
  let hasFailed = false;
  const target: AbsenceLookTarget = {
    id: "d",
    look() {
      looking ??= new Promise<void>((resolve) => {
        begun++;
        ends.push(() => {
          looking = undefined;
          resolve();
        });
      });
      return looking;
    },
    isLooking: () => looking !== undefined,
    hasFailed: () => hasFailed,
  };
  return {
    target,
    begun: () => begun,
    fail: () => {
      hasFailed = true;
    },
    async end() {
      await new Promise((resolve) => setTimeout(resolve, 5));
      ends.shift()?.();
      await new Promise((resolve) => setTimeout(resolve, 5));
    },
  };
}

t.test("all who ask before a look begins share it; who comes later waits for another", async (t) => {
  const { target, begun, end } = createTarget();
  const looks = createAbsenceLooks(target);
  const done: string[] = [];
  const ask = (name: string) => void looks.look().then(() => done.push(name));
  for (const name of ["a", "b"]) ask(name);
  await new Promise((resolve) => setTimeout(resolve, 5));
  t.equal(begun(), 1);
  for (const name of ["c", "d"]) ask(name);
  await end();
  t.same(done, ["a", "b"], "what was written since may not be in that look");
  t.equal(begun(), 2);
  await end();
  t.same(done, ["a", "b", "c", "d"]);
  t.equal(begun(), 2);
});

t.test("a look of somebody else's that is under way is waited for, and another made", async (t) => {
  const { target, begun, end } = createTarget();
  const looks = createAbsenceLooks(target);
  void target.look();
  let isDone = false;
  const asked = looks.look().then(() => {
    isDone = true;
  });
  await end();
  t.notOk(isDone);
  t.equal(begun(), 2);
  await end();
  await asked;
});

t.test("where it cannot be looked, nobody knows what is there", async (t) => {
  const { target, end, fail } = createTarget();
  const asked = createAbsenceLooks(target).look();
  fail();
  const rejected = t.rejects(asked, {
    code: "source-unreadable",
    message: /^dataset 'd': its source .* cannot be read$/,
  });
  await end();
  await rejected;
});

t.test("looks in a row leave time between them", async (t) => {
  let looks = 0;
  const absence = createAbsenceLooks({
    id: "d",
    look: () =>
      new Promise((resolve) => {
        looks++;
        setTimeout(resolve, 100);
      }),
    isLooking: () => false,
    hasFailed: () => false,
  });
  const until = performance.now() + 2_000;
  while (performance.now() < until) await absence.look();
  t.ok(looks <= 10, `${looks} of 100 ms each in two seconds, of which five are for free`);
});
