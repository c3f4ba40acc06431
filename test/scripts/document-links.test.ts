import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";

let root = dirname(fileURLToPath(import.meta.url));
while (!existsSync(join(root, "package.json"))) root = dirname(root);

const rooms = readdirSync(join(root, "src"), { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => `src/${name}/README.md`);
const documents = [
  ...["README.md", "CONTRIBUTING.md", "SECURITY.md"],
  ...["bench/README.md", "scripts/deploy/README.md", "test/clients/README.md"],
  ...rooms.filter((file) => existsSync(join(root, file))),
];

/** Anchors of a document's headings, as GitHub makes them. */
function anchorsOf(file: string): string[] {
  return Array.from(readFileSync(file, "utf8").matchAll(/^#+ (.+)$/gm), ([, heading = ""]) =>
    heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

for (const document of documents) {
  t.test(`links of ${document} lead somewhere`, (t) => {
    const text = readFileSync(join(root, document), "utf8");
    for (const [, target = ""] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? join(root, document) : resolve(root, dirname(document), path);
      t.ok(existsSync(file), target);
      if (anchor !== undefined) t.ok(anchorsOf(file).includes(anchor), target);
    }
    t.end();
  });
}
