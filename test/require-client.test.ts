import t from "tap";
import { CLIENT_NAMES, clientMissing } from "./require-client.js";

for (const name of CLIENT_NAMES) {
  t.test(`a client is there or its test says why it is skipped: ${name}`, (t) => {
    let answer: string | false;
    try {
      answer = clientMissing(name);
    } catch (error) {
      t.equal(process.env.ZPUBLISH_REQUIRE_CLIENTS, "1", String(error));
      throw error;
    }
    if (answer !== false) t.match(answer, /^skipped, because /);
    t.equal(clientMissing(name), answer, "the same answer the second time");
    t.end();
  });
}
