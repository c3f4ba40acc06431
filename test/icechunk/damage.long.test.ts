import { readdirSync, readFileSync, renameSync, utimesSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { openSource } from "../../src/open/open-source.js";
import { effort } from "../support/effort.js";
import {
  askIcechunk,
  differencesOf,
  type Reading,
  readRepository,
} from "../support/icechunk/damaged-repository.js";
import { icechunkMissing, openIcechunk, type Repository } from "../support/icechunk/open-icechunk.js";
import { HEADER_BYTES } from "../support/icechunk/repository-file.js";
import { array, chunk, group } from "../support/icechunk/sample-repository.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(900_000);

/*
 * What can be noticed. The files of a repository carry no checksum, and their Zstandard frames have none either. A bit that is flipped in
 * a text, such as a path or an attribute, in the bytes of an inline chunk, in the coordinates of a reference or in its offset makes another
 * repository that is as sound as the one before. So an answer is wrong if it is neither what was written, nor a refusal by name, nor what
 * Icechunk's own library reads from the same damaged files. Without compression, a repository has as many such bits again, which no frame
 * hides; Icechunk does not read it then, so only that every answer comes, and that every failure has a name, is checked.
 */

const skip = icechunkMissing();
const VERSIONS = [1, 2] as const;

/** A repository of small files: two arrays, of inline chunks and of files, with holes, and a history of two commits and a tag. */
async function createSmall(t: Test, specVersion: 1 | 2): Promise<Repository> {
  const icechunk = await openIcechunk(t);
  const repository = await icechunk.create({ specVersion, config: { inlineChunkThresholdBytes: 12 } });
  const first = await repository.commit("first", [
    group(""),
    array("inline", [10], [2]),
    array("g/file", [4, 6], [2, 3]),
    ...[0, 1, 3].map((at) => chunk(`inline/c/${at}`, 2, 1000 + at)),
    ...["0/0", "0/1", "1/1"].map((at, index) => chunk(`g/file/c/${at}`, 6, 2000 + index)),
  ]);
  await repository.call("createTag", "v1", first);
  await repository.commit("second", [chunk("inline/c/4", 2, 1004)]);
  return repository;
}

/** Files that a reader of the branch `main` reads, below the repository, without the chunks. */
async function filesOfMain(repository: Repository): Promise<string[]> {
  const snapshot = (await repository.call("lookupBranch", "main")) as string;
  const manifests = (await repository.call("lookupManifestFiles", snapshot)) as readonly { id: string }[];
  return [
    ...(readdirSync(repository.path).includes("repo") ? ["repo"] : ["refs/branch.main/ref.json"]),
    `snapshots/${snapshot}`,
    ...manifests.map(({ id }) => `manifests/${id}`),
  ];
}

/** Writes a file with times a minute ago, so that no read waits for it. */
function write(path: string, bytes: Uint8Array): void {
  writeFileSync(path, bytes);
  const old = Date.now() / 1000 - 60;
  utimesSync(path, old, old);
}

interface Damage {
  readonly file: string;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Reads a repository with each of some damages. @returns What is wrong, and the damages whose answers were neither right nor refused. */
async function tryAll(repository: Repository, damages: Iterable<Damage>, sound: Reading) {
  const problems: string[] = [];
  const other: { readonly damage: Damage; readonly reading: Reading; readonly keys: readonly string[] }[] =
    [];
  let tried = 0;
  for (const damage of damages) {
    tried++;
    const path = join(repository.path, damage.file);
    const before = readFileSync(path);
    write(path, damage.bytes);
    // Elsewhere each time: manifests that were read are kept, since files of a repository never change.
    const place = `${repository.path}-${tried}`;
    renameSync(repository.path, place);
    try {
      const reading = await readRepository(place);
      const keys = differencesOf(reading, sound);
      if (keys.length > 0) other.push({ damage, reading, keys });
    } catch (error) {
      problems.push(`${damage.name}: ${(error as Error).message}`);
    } finally {
      renameSync(place, repository.path);
      write(path, before);
    }
  }
  return { tried, problems, other };
}

/** Yields copies of files with one bit flipped: every 17th, and each of them with an effort of 17. @param begin Bytes of each file that stay. */
function* flips(repository: Repository, files: readonly string[], begin = 0): Generator<Damage> {
  const step = Math.max(1, Math.round(17_000 / effort(1_000)));
  for (const file of files) {
    const good = readFileSync(join(repository.path, file));
    for (let bit = begin * 8; bit < good.length * 8; bit += step) {
      const bytes = Uint8Array.from(good);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      yield { file, name: `bit ${bit} of ${file}`, bytes };
    }
  }
}

for (const specVersion of VERSIONS) {
  t.test(
    `format ${specVersion}: no bit that flips gives a value that neither was written nor is what Icechunk reads`,
    { skip },
    async (t) => {
      const repository = await createSmall(t, specVersion);
      const files = await filesOfMain(repository);
      const sound = await readRepository(repository.path);
      t.equal(
        [...sound.values()].filter((answer) => /^[\da-f]+$/.test(answer)).length,
        7,
        "chunks of the sound one",
      );
      const { tried, problems, other } = await tryAll(repository, flips(repository, files), sound);
      t.same(problems.slice(0, 10), [], `${problems.length} of ${tried}`);
      const wrong: string[] = [];
      const lost = new Set<string>();
      for (const { damage, reading, keys } of other) {
        const path = join(repository.path, damage.file);
        const before = readFileSync(path);
        write(path, damage.bytes);
        for (const key of keys) {
          const answer = reading.get(key) ?? "absent";
          const theirs = await askIcechunk(repository, key);
          if (answer === "absent" && theirs === "refused") lost.add(damage.name);
          else if (answer !== theirs)
            wrong.push(`${damage.name}: ${key} is ${answer}, by Icechunk ${theirs}`);
        }
        write(path, before);
      }
      t.comment(`${tried} bits, ${other.length} of which make another sound repository`);
      t.same(wrong.slice(0, 10), [], `${wrong.length} wrong answers`);
      t.same([...lost], [], "bits that make chunks absent in a repository that Icechunk refuses");
    },
  );

  t.test(`format ${specVersion}: without compression, every flipped bit is answered`, { skip }, async (t) => {
    const repository = await createSmall(t, specVersion);
    const files = await filesOfMain(repository);
    await repository.inflate();
    const sound = await readRepository(repository.path);
    t.ok(sound.size > 8);
    const { tried, problems } = await tryAll(repository, flips(repository, files, HEADER_BYTES), sound);
    t.same(problems.slice(0, 10), [], `${problems.length} of ${tried}`);
  });

  t.test(
    `format ${specVersion}: files that are cut short, empty or another are refused`,
    { skip },
    async (t) => {
      const repository = await createSmall(t, specVersion);
      const files = await filesOfMain(repository);
      const sound = await readRepository(repository.path);
      function* damages(): Generator<Damage> {
        for (const file of files) {
          const good = readFileSync(join(repository.path, file));
          const step = Math.max(1, Math.round(20 / effort(20)));
          for (let length = 0; length < good.length; length += step)
            yield { file, name: `${file} cut to ${length}`, bytes: good.subarray(0, length) };
          for (const other of files) {
            if (other === file) continue;
            yield {
              file,
              name: `${other} in place of ${file}`,
              bytes: readFileSync(join(repository.path, other)),
            };
          }
        }
      }
      const { tried, problems, other } = await tryAll(repository, damages(), sound);
      t.ok(tried > 20);
      t.same(problems.slice(0, 10), [], `${problems.length} of ${tried}`);
      t.same(
        other.map(({ damage, keys }) => `${damage.name}: ${keys}`),
        [],
      );
    },
  );
}

t.test("a frame that says little and holds gigabytes takes bounded memory", { skip }, async (t) => {
  const repository = await createSmall(t, 2);
  const files = await filesOfMain(repository);
  const sound = await readRepository(repository.path);
  const before = process.resourceUsage().maxRSS;
  const damages = files.map((file) => ({
    file,
    name: `${file} of 2 GiB`,
    bytes: Buffer.concat([
      readFileSync(join(repository.path, file)).subarray(0, HEADER_BYTES),
      zeros(2 ** 31),
    ]),
  }));
  const { problems, other } = await tryAll(repository, damages, sound);
  t.same([problems, other.map(({ damage }) => damage.name)], [[], []]);
  const grownMiB = (process.resourceUsage().maxRSS - before) / 1024;
  t.ok(grownMiB < 1_000, `${grownMiB} MiB`);
});

/** A frame of Zstandard of so many zero bytes: blocks of 128 KiB that repeat one byte, without the length of their content. */
function zeros(byteLength: number): Buffer {
  const blocks = byteLength / 2 ** 17;
  // Magic number; no checksum, no length, no dictionary; a window of 8 MiB.
  const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68]);
  const body = Buffer.alloc(4 * blocks);
  for (let block = 0; block < blocks; block++) {
    const isLast = block === blocks - 1 ? 1 : 0;
    body.writeUIntLE(isLast | (1 << 1) | ((2 ** 17) << 3), 4 * block, 3);
  }
  return Buffer.concat([head, body]);
}

for (const specVersion of VERSIONS) {
  t.test(`format ${specVersion}: a history that leads back to itself ends`, { skip }, async (t) => {
    const repository = await createSmall(t, specVersion);
    const copy = join(await makeDirectory(t), "copy");
    await cp(repository.path, copy, { recursive: true });
    const ids = ((await repository.call("ancestry", { branch: "main" })) as { id: string }[]).map(
      ({ id }) => id,
    );
    const inflated = (await openIcechunk(t)).at(copy);
    await inflated.inflate();
    const [newest, parent] = ids as [string, string];
    const file = join(copy, specVersion === 1 ? `snapshots/${parent}` : "repo");
    const bytes = readFileSync(file);
    if (specVersion === 1) {
      // The first commit's parent, the initial snapshot, becomes the second commit.
      const at = bytes.indexOf(decodeId(ids[2] as string), HEADER_BYTES);
      t.ok(at > 0, "the parent's id in the file of a snapshot");
      decodeId(newest).copy(bytes, at);
    } else {
      // Parents are places in the list of snapshots: each of the three becomes its own, wherever that is written.
      const list = ["1CECHNKREP0F1RSTCMT0", ...ids]
        .filter((id, index, all) => all.indexOf(id) === index)
        .sort();
      for (const id of list) replaceParent(bytes, id, list.indexOf(id));
    }
    write(file, bytes);
    const source = await openSource(`icechunk:${copy}`, { freshness: "immutable" });
    const outcome = await source
      .readTree()
      .then(() => source.versions?.list())
      .catch((error: Error) => error.message);
    t.ok(Array.isArray(outcome) || (typeof outcome === "string" && outcome !== ""), JSON.stringify(outcome));
    await source.close();
  });
}

/** Makes a snapshot of an uncompressed file `repo` its own parent. */
function replaceParent(file: Buffer, id: string, index: number): void {
  const at = file.indexOf(decodeId(id), HEADER_BYTES);
  // The table that has the id inline, as a struct, is found by its vtable, whose first field is the id.
  for (let table = at - 4; table > at - 64; table--) {
    const vtable = table - file.readInt32LE(table);
    if (vtable < HEADER_BYTES || vtable + 8 > file.length || file.readUInt16LE(vtable) < 8) continue;
    if (table + file.readUInt16LE(vtable + 4) !== at) continue;
    const field = file.readUInt16LE(vtable + 6);
    if (field !== 0) file.writeInt32LE(index, table + field);
    return;
  }
}

/** Bytes of an id, from Crockford's base 32. */
function decodeId(id: string): Buffer {
  let bits = 0n;
  for (const digit of id) bits = (bits << 5n) | BigInt("0123456789ABCDEFGHJKMNPQRSTVWXYZ".indexOf(digit));
  return Buffer.from((bits >> 4n).toString(16).padStart(24, "0"), "hex");
}
