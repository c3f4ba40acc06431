import t from "tap";
import { readSources } from "./support/read-sources.js";

/** What each is better said with is in CONTRIBUTING. */
const FORBIDDEN: readonly RegExp[] = [
  /\b(?:whoever|nobody|somebody|anybody|anew)\b/gi,
  /\b(?:no good|for so long|be had|is said|goes on)\b/gi,
  /\b(?:turnOf|isWanted)\b/g,
  // No courtroom: failures are recorded.
  /\b(?:strikes?|acquit\w*|judg(?:e|es|ed|ing|ment)|suspect\w*|verdicts?|culprits?|deeds?)\b/gi,
  // A docstring begins with what a thing is, or what a function does.
  /\/\*\*\s+(?:\*\s+)?Of\b/g,
];

t.test("code and prose say who does what, in words that are in use", async (t) => {
  const files = readSources(["src", "workers", "README.md", "CONTRIBUTING.md"], /(?:(?<!\.d)\.c?ts|\.md)$/);
  const found = [...files].flatMap(([path, text]) =>
    FORBIDDEN.flatMap((words) => [...text.matchAll(words)]).map(({ 0: word, index }) => {
      const line = text.slice(0, index).split("\n").length;
      return `${path}:${line}: ${word.replace(/\s+/g, " ")}`;
    }),
  );
  t.same(found, []);
});
