import t from "tap";
import { formatCollection, inspectCollection } from "../../src/cli/inspect.js";
import type { DatasetProvider } from "../../src/dataset/dataset-provider.js";

function providerOf(ids: readonly string[]): DatasetProvider {
  return {
    ...{ name: "archive", prefix: "archive~", close: async () => undefined },
    list: async () => ids,
    async open(id) {
      if (id === "gone") return undefined;
      return {
        id,
        location: `/data/${id.replaceAll("~", "/")}`,
        immutable: false,
        encoding: {},
        variables: {},
      };
    },
    problems: () => [{ name: "a\u001bb.nc", reason: "no valid name" }],
  };
}

t.test("a collection has ids and locations, sorted, and problems", async (t) => {
  const found = await inspectCollection("/data", providerOf(["b.nc", "2024~a.nc", "gone"]));
  t.match(found, {
    location: "/data",
    datasets: [
      { id: "archive~2024~a.nc", location: "/data/2024/a.nc" },
      { id: "archive~b.nc", location: "/data/b.nc" },
    ],
    problems: [{ reason: "no valid name" }],
  });
  t.match(
    formatCollection({ ...found, seconds: 0.25 }),
    `/data: 2 datasets, listed in 0.25 s

  id                 location
  archive~2024~a.nc  /data/2024/a.nc
  archive~b.nc       /data/b.nc

1 problem:
  a\\x1bb.nc: no valid name
`,
  );
});

t.test("of many datasets and problems, the first and the last are shown", async (t) => {
  const ids = Array.from({ length: 1_000 }, (_, index) => `d${String(index).padStart(3, "0")}`);
  const found = await inspectCollection("/data", providerOf(ids));
  const problems = ids.map((name) => ({ name, reason: "broken" }));
  const lines = formatCollection({ ...found, problems }).split("\n");
  t.equal(lines.length, 1 + 2 + 21 + 2 + 21 + 1);
  t.same(
    lines.filter((line) => line.includes("…")),
    ["  … 980 more", "  … 980 more"],
  );
  t.match(lines[13], /^ {2}… 980 more$/);
  t.match(lines[14], /archive~d990/);
});

t.test("an empty folder has no table", async (t) => {
  const empty = { location: "/data", datasets: [], problems: [], seconds: 0.001 };
  t.equal(formatCollection(empty), "/data: 0 datasets, listed in 0.001 s\n");
});
