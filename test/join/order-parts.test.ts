import t from "tap";
import { orderParts, type UnorderedPart } from "../../src/join/order-parts.js";
import { effort } from "../effort.js";

const random = (below: number) => Math.floor(Math.random() * below);

/** Returns parts whose values ascend or descend; those of one part are different. */
function randomParts(): { parts: UnorderedPart[]; values: number[][]; isDescending: boolean } {
  const isDescending = Math.random() < 0.5;
  const values = Array.from({ length: 1 + random(6) }, () => {
    const own = new Set(Array.from({ length: random(8) }, () => random(20)));
    return [...own].sort((a, b) => (isDescending ? b - a : a - b));
  });
  // One value says nothing of the direction.
  if (!values.some((own) => own.length > 1)) return randomParts();
  const parts = values.map((own, part) => ({
    part,
    name: `${random(20)}-${part}.nc`,
    length: own.length,
    keys: Float64Array.from(own),
    textOf: (step: number) => String(own[step]),
  }));
  return { parts, values, isDescending };
}

t.test("each value is that of the last part that has it, whatever overlaps", async (t) => {
  const collator = new Intl.Collator("en", { numeric: true });
  for (let round = 0; round < effort(5000); round++) {
    const { parts, values, isDescending } = randomParts();
    const sign = isDescending ? -1 : 1;
    const { order, steps } = orderParts(parts, "time", "last");
    const ranked = parts
      .filter(({ length }) => length > 0)
      .sort((a, b) => {
        const [first, second] = [values[a.part]?.[0] ?? 0, values[b.part]?.[0] ?? 0];
        return sign * (first - second) || collator.compare(a.name, b.name);
      });
    const owners = new Map<number, number>();
    for (const { part } of ranked) for (const value of values[part] ?? []) owners.set(value, part);
    const expected = [...owners].sort(([a], [b]) => sign * (a - b));
    const received = steps.flatMap(({ part, from, length }) =>
      Array.from({ length }, (_, step) => [values[part]?.[from + step], part]),
    );
    t.same(received, expected);
    t.same(
      order.slice(0, ranked.length),
      ranked.map(({ part }) => part),
    );
    t.equal(order.length, parts.length);
    let start = 0;
    for (const step of steps) {
      if (step.start !== start) t.equal(step.start, start);
      start += step.length;
    }
  }
});

t.test("parts that overlap are refused unless asked for, and others are not", async (t) => {
  for (let round = 0; round < effort(2000); round++) {
    const { parts, values, isDescending } = randomParts();
    const sign = isDescending ? -1 : 1;
    const full = values.filter((own) => own.length > 0);
    full.sort((a, b) => sign * ((a[0] as number) - (b[0] as number)));
    const all = full.flat();
    const isOrdered = all.every(
      (value, index) => index === 0 || sign * (value - (all[index - 1] as number)) > 0,
    );
    if (isOrdered) t.equal(orderParts(parts, "time").steps.length, full.length);
    else t.throws(() => orderParts(parts, "time"), { code: "invalid-metadata" });
  }
});
