import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

/**
 * Runs compiled test files one after the other in this process. Loading the server and tap takes a second of the processor, which is more than
 * most quick files take themselves.
 *
 *     node dist/scripts/run-together.js FILE …
 */
const files = process.argv.slice(2);
// tap names the folders of `t.testdir` after the script and its arguments.
process.argv.splice(1, Number.POSITIVE_INFINITY, files[0] as string);
const { default: t } = await import("tap");
let tests = 0;
const { test } = t;
t.test = ((...args: Parameters<typeof test>) => {
  tests += 1;
  return test.apply(t, args);
}) as typeof test;
for (const file of files) {
  const before = tests;
  t.comment(file);
  await import(pathToFileURL(resolve(file)).href);
  if (tests === before) t.fail(`${file}: expected tests, received none`);
}
