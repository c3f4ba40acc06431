import t from "tap";
import { formatByteSize, parseByteSize } from "../../src/config/value-schemas.js";

t.test("sizes are read with decimal and binary units", (t) => {
  t.equal(parseByteSize("1048576"), 1_048_576);
  t.equal(parseByteSize("10GiB"), 10 * 1024 ** 3);
  t.equal(parseByteSize("512 MB"), 512_000_000);
  t.equal(parseByteSize("1.5 tib"), 1.5 * 1024 ** 4);
  for (const text of ["", "GiB", "-1", "1e3", "10XB", "1 0", "99999999TiB", "Infinity"]) {
    t.equal(parseByteSize(text), undefined, JSON.stringify(text));
  }
  t.end();
});

t.test("sizes are written for people", (t) => {
  t.equal(formatByteSize(0), "0 B");
  t.equal(formatByteSize(1023), "1023 B");
  t.equal(formatByteSize(1536), "1.5 KiB");
  t.equal(formatByteSize(10 * 1024 ** 3), "10 GiB");
  t.end();
});
