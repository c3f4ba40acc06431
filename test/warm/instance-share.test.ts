import t from "tap";
import { type InstanceShare, instanceShare } from "../../src/warm/instance-share.js";

const NAMES = "192.0.2.11:9000,192.0.2.12:9000,192.0.2.13:9000";

function shareOf(instances: string, instance: string): InstanceShare {
  const share = instanceShare(instances, instance);
  if (typeof share === "string") throw new Error(share);
  return share;
}

const PATHS = Array.from({ length: 30 }, (_, i) => `/datasets/air/zarr/t2m/${i}.${i * 7}.0`);

for (const instances of [NAMES, "3"]) {
  t.test(`each path belongs to one of the instances ${instances}, and each has about a third`, async (t) => {
    const shares = ["1", "2", "3"].map((instance) => shareOf(instances, instance));
    const counts = [0, 0, 0];
    for (let i = 0; i < 3_000; i++) {
      const owners = shares.flatMap((owns, index) => (owns(`/datasets/a/zarr/v/${i}.0`) ? [index] : []));
      if (owners.length === 1) counts[owners[0] as number]!++;
    }
    t.equal(
      counts.reduce((sum, count) => sum + count),
      3_000,
      "none has two owners or none",
    );
    for (const count of counts) t.ok(count > 700, `${count} of 3,000`);
  });
}

t.test("an instance is a name or its number, and another order of names changes nothing", async (t) => {
  const second = PATHS.map(shareOf(NAMES, "192.0.2.12:9000"));
  t.strictSame(PATHS.map(shareOf(NAMES, "2")), second);
  const other = "192.0.2.13:9000, 192.0.2.12:9000, 192.0.2.11:9000";
  t.strictSame(PATHS.map(shareOf(other, "192.0.2.12:9000")), second);
});

t.test("what does not fit is a sentence", async (t) => {
  t.equal(instanceShare("0", "1"), "--instances: expected 1 to 1024 instances, received 0");
  t.equal(instanceShare("3", "0"), "--instance: expected 1 to 3, received 0");
  t.equal(instanceShare("3", "x"), "--instance: expected 1 to 3, received x");
  t.equal(instanceShare("a:1,b:1", "c:1"), "--instance: expected one of a:1,b:1, or 1 to 2, received c:1");
  t.equal(instanceShare("a:1,a:1", "1"), "--instances: expected names that differ, received a:1,a:1");
  t.equal(instanceShare("a:1,", "1"), "--instances: expected a number, or names with commas, received a:1,");
});
