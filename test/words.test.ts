import t from "tap";
import { readSources } from "./read-sources.js";

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

/** Beginnings of paths that are not cleaned yet: the list only ever shrinks. */
const KNOWN: readonly string[] = ["src/chunk/", "src/collections/", "src/source/"];

t.test("code and prose say who does what, in words that are in use", async (t) => {
  const files = readSources(["src", "workers", "README.md", "CONTRIBUTING.md"], /(?:(?<!\.d)\.c?ts|\.md)$/);
  const found = [...files].flatMap(([path, text]) =>
    FORBIDDEN.flatMap((words) => [...text.matchAll(words)]).map(({ 0: word, index }) => {
      const line = text.slice(0, index).split("\n").length;
      return `${path}:${line}: ${word.replace(/\s+/g, " ")}`;
    }),
  );
  const clean = KNOWN.filter((place) => !found.some((entry) => entry.startsWith(place)));
  if (clean.length > 0) t.comment(`to be taken out of KNOWN: ${clean.join(", ")}`);
  t.same(
    found.filter((entry) => !KNOWN.some((place) => entry.startsWith(place))),
    [],
  );
});
