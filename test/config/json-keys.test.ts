import fc from "fast-check";
import t from "tap";
import { readJsonKeys } from "../../src/config/config-file.js";

t.test("keys are told in the order written, twice if they are there twice", (t) => {
  const text = '{"b": [1, {"x{": "}\\"", "1": {}}],\n "2": null, "b": [[{"\\u0061": 1}]]}';
  t.strictSame(readJsonKeys(text), [
    {
      path: [],
      keys: [
        { key: "b", line: 1 },
        { key: "2", line: 2 },
        { key: "b", line: 2 },
      ],
    },
    {
      path: ["b", 1],
      keys: [
        { key: "x{", line: 1 },
        { key: "1", line: 1 },
      ],
    },
    { path: ["b", 1, "1"], keys: [] },
    { path: ["b", 0, 0], keys: [{ key: "a", line: 2 }] },
  ]);
  t.strictSame(readJsonKeys('"{"'), []);
  t.end();
});

t.test("the objects found are those that JSON.parse finds", (t) => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1), (value, indent) => {
      const found = readJsonKeys(JSON.stringify(value, null, indent));
      let objects = 0;
      JSON.stringify(value, (_key, item: unknown) => {
        if (typeof item === "object" && item !== null && !Array.isArray(item)) objects += 1;
        return item;
      });
      if (found.length !== objects) return false;
      return found.every(({ path, keys }) => {
        let target: unknown = JSON.parse(JSON.stringify(value));
        for (const key of path) target = (target as Record<PropertyKey, unknown>)[key];
        const own = Object.keys(target as object);
        return keys.length === own.length && keys.every(({ key }) => own.includes(key));
      });
    }),
  );
  t.end();
});
