import t from "tap";
import { ZpublishError } from "../../src/errors.js";
import { errorReply } from "../../src/http/error-reply.js";

const id = () => "the-id";

t.test("shows messages of what the client asked wrongly", async (t) => {
  const reply = errorReply(new ZpublishError("not-found", "Dataset 'x' not found"), id);
  t.match(reply, { status: "404 Not Found", body: `{"detail":"Dataset 'x' not found"}`, logLevel: "debug" });
});

t.test("keeps messages of failures for the log, and gives an id to find them by", async (t) => {
  for (const code of [
    "source-unreadable",
    "corrupt-chunk",
    "codec-failed",
    "internal",
    "invalid-metadata",
  ] as const) {
    const reply = errorReply(
      new ZpublishError(code, "EACCES: permission denied, open '/srv/data/secret'"),
      id,
    );
    t.match(reply, { status: /^500 /, logLevel: "error", hasId: true });
    t.match(JSON.parse(reply.body), { detail: /./, id: "the-id" });
    t.notMatch(reply.body, "/srv");
  }
});

t.test("says when to try again", async (t) => {
  for (const code of ["overloaded", "draining", "source-changed"] as const) {
    const reply = errorReply(new ZpublishError(code, "x"), id);
    t.match(reply, { status: /^503 /, hasId: false });
    t.ok((reply.retryAfterSeconds ?? 0) > 0);
  }
});

t.test("names the parameter that is no valid string", async (t) => {
  const details = {
    parameter: "dataset_id",
    type: "string_unicode",
    msg: "Expected valid UTF-8",
    input: "%ff",
  };
  const reply = errorReply(new ZpublishError("invalid-path", "…", { details }), id);
  t.match(reply.status, /^422 /);
  t.strictSame(JSON.parse(reply.body), {
    detail: [
      { type: "string_unicode", loc: ["path", "dataset_id"], msg: "Expected valid UTF-8", input: "%ff" },
    ],
  });
});

t.test("names the parameter of the query that is not as expected", async (t) => {
  const details = { parameter: "size", type: "int", input: "9" };
  const reply = errorReply(new ZpublishError("invalid-query", "expected 64 to 1024", { details }), id);
  t.match(reply, { status: /^422 /, logLevel: "debug" });
  t.strictSame(JSON.parse(reply.body), {
    detail: [{ type: "int", loc: ["query", "size"], msg: "expected 64 to 1024", input: "9" }],
  });
});

t.test("bounds what it shows", async (t) => {
  t.ok(errorReply(new ZpublishError("not-found", "x".repeat(100_000)), id).body.length < 3000);
});
