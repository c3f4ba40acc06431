import t from "tap";
import { createCors } from "../../../src/http/headers.js";

const ALLOW = /Access-Control-Allow-Origin: (.*)\r\n/;

t.test("allows any origin, one, or those of a list", async (t) => {
  const any = createCors("*");
  t.match(any.fields("https://a.example"), /Access-Control-Allow-Origin: \*\r\n/);
  t.notOk(any.variesByOrigin);
  const one = createCors("https://a.example");
  t.equal(ALLOW.exec(one.fields("https://b.example"))?.[1], "https://a.example");
  t.ok(one.variesByOrigin);
  const list = createCors("https://a.example, https://b.example:8080");
  t.equal(ALLOW.exec(list.fields("https://b.example:8080"))?.[1], "https://b.example:8080");
  t.equal(ALLOW.exec(list.fields("https://c.example")), null);
  t.equal(ALLOW.exec(list.fields(undefined)), null);
  t.equal(ALLOW.exec(createCors("").fields("https://a.example")), null);
});

t.test("refuses what is no origin", async (t) => {
  for (const origin of [
    "example.org",
    "https://a.example/",
    "*, https://a.example",
    "https://a\r\nX: y",
    "a b",
  ]) {
    t.throws(() => createCors(origin), { code: "invalid-config", message: /^CORS origin: expected/ }, origin);
  }
});
