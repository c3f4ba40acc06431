import t from "tap";
import { outcomeOf } from "./outcome-of.js";

const FILE = { id: "a/b.nc", path: "/data/a/b.nc" };
const SEEN = { id: FILE.id, refused: [{ path: "bad/group", reason: "a reason" }], openMs: 1, heldMs: 1 };
const ANSWER = { opens: null, served: null, arrays: {}, xarray: [], compared: 0 };

t.test(
  "arrays that are absent without a refusal are differences, those of refused groups are not",
  async (t) => {
    const arrays = {
      "/same": "equal",
      "/bad/group/x": "missing",
      "/bad/groups": "missing",
      "/odd": "unread: no filter",
      "/other": "differs: dtype",
      "/more": "extra",
    };
    t.same(outcomeOf(FILE, SEEN, { ...ANSWER, arrays }, []), {
      equal: 1,
      refused: { "/bad/group": "a reason" },
      unread: ["/odd"],
      differs: { "/bad/groups": "missing", "/other": "differs: dtype", "/more": "extra" },
    });
  },
);

t.test("a file that cannot be opened has its reason without the folder it is in", async (t) => {
  const problem = "invalid-metadata: /data/a/b.nc: cut short";
  const seen = { ...SEEN, problem };
  t.same(outcomeOf(FILE, seen, undefined, []), {
    refusedFile: "invalid-metadata: a/b.nc: cut short",
    oracle: "unreadable",
  });
  t.same(outcomeOf(FILE, seen, { ...ANSWER, crash: "status 11" }, []).oracle, "crash");
  t.same(outcomeOf(FILE, seen, ANSWER, []).oracle, undefined);
});

t.test("a store that cannot be opened, a crash and errors of the server's log are differences", async (t) => {
  const { differs } = outcomeOf(FILE, SEEN, { ...ANSWER, served: "500", crash: "status 9" }, [
    { level: 50, msg: "no such codec", code: "internal", path: "/datasets/f0/zarr/x/0" },
  ]);
  t.same(Object.keys(differs ?? {}), ["/", "log /x/0"]);
});
