import t from "tap";
import { nodeName, normalNodePath } from "../../src/model/data-tree.js";

t.test("slashes that say nothing do not count", async (t) => {
  for (const [path, normal] of [
    ["a/b", "a/b"],
    ["/a/b", "a/b"],
    ["a/b/", "a/b"],
    ["//a///b//", "a/b"],
    ["a", "a"],
    ["/", ""],
    ["", ""],
  ] as const) {
    t.equal(normalNodePath(path), normal, JSON.stringify(path));
  }
});

t.test("a node's name is its last segment", async (t) => {
  t.equal(nodeName("/a/b"), "b");
  t.equal(nodeName("a"), "a");
  t.equal(nodeName("/"), "");
});
