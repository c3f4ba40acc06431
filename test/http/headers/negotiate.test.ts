import t from "tap";
import { negotiateCoding } from "../../../src/http/headers.js";

t.test("sends the coding a client weighs most, brotli before gzip before none", async (t) => {
  for (const [header, expected] of [
    [undefined, "identity"],
    ["", "identity"],
    ["gzip, deflate, br", "br"],
    ["gzip, deflate", "gzip"],
    ["x-gzip", "gzip"],
    ["GZIP", "gzip"],
    ["deflate", "identity"],
    ["*", "br"],
    ["br;q=0, *", "gzip"],
    ["*;q=0", "identity"],
    ["br;q=0.5, gzip;q=0.8", "gzip"],
    ["br; q=0.5 , gzip ; q=0.500", "br"],
    ["gzip;q=0.5, identity", "identity"],
    ["gzip;q=0", "identity"],
    ["identity;q=0", "identity"],
    ["identity;q=0, gzip;q=0.001", "gzip"],
    ["br;q=2, gzip;q=abc, ;q=1, ,", "identity"],
    ["br;q=1.000", "br"],
  ] as const) {
    t.equal(negotiateCoding(header), expected, header ?? "no header");
    t.equal(negotiateCoding(header), expected, "remembered");
  }
});

t.test("remembers a bounded number of headers", async (t) => {
  for (let i = 0; i < 1000; i += 1) t.equal(negotiateCoding(`gzip, x${i}`), "gzip");
});
