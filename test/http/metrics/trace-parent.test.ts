import t from "tap";
import { parseTraceParent } from "../../../src/http/request-head.js";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const PARENT = "b7ad6b7169203331";

t.test("a traceparent of version 00 says trace and parent", async (t) => {
  for (const flags of ["01", "02"]) {
    t.strictSame(parseTraceParent(`00-${TRACE}-${PARENT}-${flags}`), { traceId: TRACE, parentId: PARENT });
  }
});

t.test("later versions are read as far as they are like it", async (t) => {
  for (const header of [
    `01-${TRACE}-${PARENT}-01`,
    `cc-${TRACE}-${PARENT}-01-what-the-future-will-be-like`,
  ]) {
    t.match(parseTraceParent(header), { traceId: TRACE, parentId: PARENT }, header);
  }
});

t.test("an invalid header is ignored", async (t) => {
  for (const header of [
    "",
    "00",
    `00-${TRACE}-${PARENT}`,
    `00-${TRACE}-${PARENT}-01-more`,
    `00-${TRACE}-${PARENT}-0`,
    `00-${TRACE}-${PARENT}-0x`,
    `ff-${TRACE}-${PARENT}-01`,
    `00-${"0".repeat(32)}-${PARENT}-01`,
    `00-${TRACE}-${"0".repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${PARENT}-01`,
    `00-${TRACE.slice(1)}-${PARENT}-01`,
    `01-${TRACE}-${PARENT}-01.more`,
    ` 00-${TRACE}-${PARENT}-01`,
    `01-${TRACE}-${PARENT}-01-${"x".repeat(600)}`,
  ]) {
    t.equal(parseTraceParent(header), undefined, header);
  }
});
