import t from "tap";
import { formatByteLength, formatCount, formatCounted } from "../../src/pages/page.js";

t.test("bytes are written in binary units with three digits", async (t) => {
  const expected: readonly [number, string][] = [
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.00 KiB"],
    [1536, "1.50 KiB"],
    [10 * 1024, "10.0 KiB"],
    [100 * 1024 ** 2, "100 MiB"],
    [1024 ** 2 - 1, "1.00 MiB"],
    [1.45 * 1024 ** 3, "1.45 GiB"],
    [3 * 1024 ** 5, "3.00 PiB"],
    [1e30, "827181 YiB"],
  ];
  for (const [byteLength, text] of expected) t.equal(formatByteLength(byteLength), text);
});

t.test("counts have commas, and nouns their plural", async (t) => {
  t.equal(formatCount(2920), "2,920");
  t.equal(formatCounted(1, "chunk"), "1 chunk");
  t.equal(formatCounted(12345, "chunk"), "12,345 chunks");
});
