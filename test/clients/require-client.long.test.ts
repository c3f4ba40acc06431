import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { commandOf, GENERATIONS, PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { CLIENT_NAMES, clientMissing, clientMissingIn } from "../support/clients/require-client.js";

for (const name of CLIENT_NAMES) {
  t.test(`a client is there or its test says why it is skipped: ${name}`, async (t) => {
    let answer: string | false;
    try {
      answer = clientMissing(name);
    } catch (error) {
      t.equal(process.env.ZPUBLISH_REQUIRE_CLIENTS, "1", String(error));
      throw error;
    }
    if (answer !== false) t.match(answer, /^skipped, because /);
    t.equal(clientMissing(name), answer, "the same answer the second time");
  });
}

for (const generation of GENERATIONS) {
  const skip = clientMissingIn(generation, "numcodecs");
  t.test(`a program of ${generation} sees temporary files and the checkout`, { skip }, async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "zpublish-root-"));
    t.teardown(() => rmSync(directory, { recursive: true }));
    writeFileSync(join(directory, "note"), "from outside");
    const script = `. /etc/os-release; echo "$VERSION_CODENAME"; cat "$1/note"; test -f "$2/package.json"`;
    const command = commandOf(generation, "sh", ["-c", script, "sh", directory, PACKAGE_ROOT]);
    const { status, stdout, stderr } = spawnSync(...command, { encoding: "utf8" });
    t.equal(status, 0, stderr);
    const [codename, note] = stdout.split("\n");
    t.equal(note, "from outside");
    t.equal(codename === "trixie", generation === "trixie");
  });
}
