import { randomBytes } from "node:crypto";
import { setImmediate as nextIteration } from "node:timers/promises";
import t from "tap";
import { messageOf, ZpublishError } from "../../src/errors.js";
import type { ByteStore } from "../../src/stores/byte-store.js";
import { readInflated } from "../../src/stores/zip/inflated-entries.js";
import { isZip, openZipStore } from "../../src/stores/zip/zip-store.js";
import { createMemoryStore, type MemoryStore } from "../support/memory-store.js";
import { writeZip, type ZipEntry, type ZipOptions } from "../support/write-zip.js";

const KEY = "a/x.zip";

async function open(
  entries: readonly ZipEntry[],
  options: ZipOptions = {},
): Promise<{ container: MemoryStore; store: Awaited<ReturnType<typeof openZipStore>> }> {
  const container = createMemoryStore({ [KEY]: writeZip(entries, options) });
  return { container, store: await openZipStore(container, KEY) };
}

async function textOf(store: ByteStore, key: string): Promise<string | undefined> {
  const read = await store.read(key);
  return read && Buffer.from(read.bytes).toString();
}

const code = (expected: string) => ({ name: "ZpublishError", code: expected });
const MIB = 2 ** 20;
const long = randomBytes(100_000);
const basic: readonly ZipEntry[] = [
  { name: "zarr.json", content: "{}" },
  { name: "t/", content: "" },
  { name: "t/zarr.json", content: '{"a": 1}', isDeflated: true },
  { name: "t/c/0/0", content: long },
  { name: "t/c/0/1", content: "" },
];

t.test("opens an archive with one request, and reads each entry with one", async (t) => {
  const { container, store } = await open(basic);
  t.match(container.takeRequests(), [/ -65633$/]);
  t.equal(await textOf(store, "zarr.json"), "{}");
  t.equal(await textOf(store, "t/zarr.json"), '{"a": 1}');
  t.same(Buffer.from((await store.read("t/c/0/0"))!.bytes), long);
  t.equal(await textOf(store, "t/c/0/1"), "");
  t.equal(container.takeRequests().length, 4);
  const first = await store.read("t/c/0/0");
  t.match(container.takeRequests(), [/^read a\/x\.zip \d+\+100000$/], "the place of the data is known now");
  t.equal(first?.objectByteLength, 100_000);
  t.same(first?.version, store.version);
  t.equal(await store.read("t/c/1/0"), undefined);
  t.equal(await store.read("t/"), undefined, "a directory is no object");
  t.same(container.takeRequests(), [`stat ${KEY}`, `stat ${KEY}`], "absence is checked");
  t.same(await store.stat("t/c/0/0"), { version: store.version, byteLength: 100_000 });
  t.equal(await store.stat("t"), undefined);
  t.equal(store.location, "memory://store/a/x.zip");
});

t.test("reads the end of a long archive, and a long directory besides", async (t) => {
  const few = createMemoryStore({ [KEY]: writeZip([{ name: "a", content: long }]) });
  await openZipStore(few, KEY);
  t.same(few.takeRequests(), [`read ${KEY} -65633`]);
  const names = Array.from({ length: 2_000 }, (_, index) => ({ name: `t/c/${index}`, content: `${index}` }));
  const { container, store } = await open(names);
  t.match(container.takeRequests(), [/ -65633$/, /^read .*\+/]);
  t.equal(await textOf(store, "t/c/1234"), "1234");
});

t.test("reads ranges in place if an entry is stored", async (t) => {
  const { container, store } = await open(basic);
  container.takeRequests();
  const middle = await store.read("t/c/0/0", { range: { offset: 70_000, byteLength: 10 } });
  t.same(Buffer.from(middle!.bytes), long.subarray(70_000, 70_010));
  t.equal(middle?.objectByteLength, 100_000);
  t.match(container.takeRequests(), [/\+\d{3}$/, /\+10$/], "the header is read alone at the first time");
  const last = await store.read("t/c/0/0", { range: { last: 16 } });
  t.same(Buffer.from(last!.bytes), long.subarray(-16));
  t.match(container.takeRequests(), [/\+16$/]);
  const fresh = await openZipStore(container, KEY);
  container.takeRequests();
  const near = await fresh.read("t/c/0/0", { range: { offset: 5, byteLength: 7 } });
  t.same(Buffer.from(near!.bytes), long.subarray(5, 12));
  t.equal(container.takeRequests().length, 1, "a range near the header is read together with it");
  const ofDeflated = await store.read("t/zarr.json", { range: { last: 2 } });
  t.equal(Buffer.from(ofDeflated!.bytes).toString(), "1}");
  for (const range of [{ last: 3 }, { offset: 1, byteLength: 2 }, { offset: 3, byteLength: 0 }]) {
    await t.rejects(store.read("zarr.json", { range }), code("corrupt-chunk"), JSON.stringify(range));
  }
  await t.rejects(store.read("t/c/0/0", { maxByteLength: 99_999 }), code("corrupt-chunk"));
  const memory = new Uint8Array(100_000);
  const read = await store.read("t/c/0/0", { allocate: (byteLength) => memory.subarray(0, byteLength) });
  t.equal(read?.bytes.buffer, memory.buffer, "into the caller's memory");
});

t.test(
  "inflates a deflated entry once for all ranges that are asked of it, and whole ones of long entries",
  async (t) => {
    const content = randomBytes(3 * 2 ** 20 + 5);
    const { container, store } = await open([{ name: "v", content, isDeflated: true }]);
    const rangeAt = (offset: number) => store.read("v", { range: { offset, byteLength: 5_000 } });
    container.takeRequests();
    const offsets = Array.from({ length: 50 }, (_, index) => index * 62_000);
    for (const round of ["together", "later"]) {
      const reads = await Promise.all(offsets.map(rangeAt));
      reads.forEach((read, index) => {
        const offset = offsets[index]!;
        t.ok(content.subarray(offset, offset + 5_000).equals(read!.bytes), `${round}: from ${offset}`);
      });
    }
    t.equal(container.takeRequests().filter((request) => request.startsWith("read")).length, 7, "in pieces");
    const whole = Buffer.alloc(17 * 2 ** 20, content);
    const archive = await open([{ name: "v", content: whole, isDeflated: true, level: 0 }]);
    t.ok(whole.equals((await archive.store.read("v"))!.bytes));
  },
);

t.test(
  "ranges of an entry that is too long to be kept are inflated in one go if they come in order",
  async (t) => {
    const content = Buffer.alloc(66 * MIB);
    for (let at = 0; at < content.length; at += MIB) content.writeUInt32LE(at + 1, at);
    const { container, store } = await open([{ name: "v", content, isDeflated: true, level: 0 }]);
    container.takeRequests();
    const readAt = async (offset: number) => {
      const found = await store.read("v", { range: { offset, byteLength: 4 } });
      t.equal(Buffer.from(found!.bytes).readUInt32LE(), offset + 1);
      return container.takeRequests().filter((request) => request.startsWith("read")).length;
    };
    let reads = 0;
    for (let at = 0; at < content.length; at += MIB) reads += await readAt(at);
    t.ok(reads <= 2 * 66 + 2, `${reads} reads of half a mebibyte`);
    t.ok((await readAt(40 * MIB)) <= 2, "what came last is kept, but for what is read ahead");
    t.ok((await readAt(MIB)) >= 3, "and what came first is not");
  },
);

t.test("what would take minutes to inflate is refused at once", async (t) => {
  let fail = () => {};
  let hasBegun = () => {};
  const begun = new Promise<void>((resolve) => {
    hasBegun = resolve;
  });
  const failing = new Promise<Uint8Array>((_, reject) => {
    fail = () => reject(new ZpublishError("source-unreadable", "it is gone"));
  });
  const readStored = () => {
    hasBegun();
    return failing;
  };
  const read = (id: string) => {
    const lengths = { byteLength: 9 * 1024 * MIB, storedByteLength: 1 };
    const entry = { id, name: id, ...lengths, checksum: 0, readStored };
    return readInflated(entry, { offset: 0, byteLength: 1, into: new Uint8Array(1) });
  };
  const first = read("first");
  await begun;
  const second = read("second");
  await nextIteration();
  await t.rejects(read("third"), {
    ...code("overloaded"),
    message: /'third': expected at most 17179869184 bytes/,
  });
  fail();
  await t.rejects(first, code("source-unreadable"));
  await t.rejects(second, code("source-unreadable"));
});

t.test("no range of a damaged entry is read, and none for readers that have gone", async (t) => {
  const content = randomBytes(2 ** 20);
  const bytes = writeZip([{ name: "v", content, isDeflated: true, level: 0 }]);
  const range = { offset: 0, byteLength: 16 };
  const damaged = Buffer.from(bytes);
  damaged[2 ** 19]! ^= 1;
  const { read } = await openZipStore(createMemoryStore({ [KEY]: damaged }), KEY);
  await t.rejects(read("v", { range }), { ...code("corrupt-chunk"), message: /'v': expected CRC-32/ });
  const memory = createMemoryStore({ [KEY]: Buffer.concat([Buffer.alloc(1), bytes]) });
  const gone = new AbortController();
  let isOpen = false;
  const container: ByteStore = {
    ...memory,
    read(key, options) {
      if (isOpen) gone.abort();
      return memory.read(key, options);
    },
  };
  const store = await openZipStore(container, KEY);
  isOpen = true;
  await t.rejects(store.read("v", { range, signal: gone.signal }), {
    ...code("cancelled"),
    message: /no reader waits for 'v'/,
  });
  const again = await store.read("v", { range });
  t.ok(content.subarray(0, 16).equals(again!.bytes), "the next reader gets it");
});

t.test("refuses every read once the archive is replaced or gone", async (t) => {
  const { container, store } = await open(basic);
  const { version } = store;
  t.equal(await store.readIfChanged("zarr.json", version), "unchanged");
  t.match(await store.readIfChanged("zarr.json", { token: "other" }), { version });
  await t.rejects(store.read("zarr.json", { version: { token: "other" } }), code("source-changed"));
  container.put(KEY, writeZip([{ name: "new", content: "2" }]));
  const reads = (): Promise<unknown>[] => [
    store.read("zarr.json"),
    store.read("t/zarr.json"),
    store.read("t/c/0/1"),
    store.read("new"),
    store.stat("zarr.json"),
    store.stat("new"),
    store.readIfChanged("zarr.json", version),
    store.readIfChanged("new", version),
  ];
  for (const read of reads()) await t.rejects(read, code("source-changed"));
  container.remove(KEY);
  for (const read of reads()) await t.rejects(read, code("source-unreadable"));
  await t.rejects(openZipStore(container, KEY), code("source-unreadable"));
  const between = createMemoryStore({
    [KEY]: writeZip(Array.from({ length: 2_000 }, (_, index) => ({ name: `${index}`, content: "" }))),
  });
  between.onRequest = (request) => {
    if (!request.includes("-")) between.put(KEY, writeZip(basic));
  };
  await t.rejects(openZipStore(between, KEY), code("source-changed"), "between end and directory");
});

t.test("tells archives by their first bytes", async (t) => {
  t.ok(isZip(writeZip(basic)));
  t.ok(isZip(writeZip([])), "an empty one");
  for (const text of ["", "PK", "{}", "PK\x01\x02", "\x89HDF"]) t.notOk(isZip(Buffer.from(text, "latin1")));
  const { store } = await open([]);
  t.same(await store.list!(""), { objects: [], prefixes: [] });
});

t.test("lists names, and says in which object they lie", async (t) => {
  const more = ["t-/a", "té/b"].map((name) => ({ name, content: "" }));
  const { container, store } = await open([...basic, ...more]);
  container.takeRequests();
  const listed = async (prefix: string) => {
    const { objects, prefixes } = await store.list!(prefix);
    return [[...objects].sort(), [...prefixes].sort()];
  };
  t.same(await listed(""), [["zarr.json"], ["t", "t-", "té"]]);
  t.same(await listed("t/"), [["zarr.json"], ["c"]]);
  t.same(await listed("t/c/0/"), [["0", "1"], []]);
  t.same(await listed("té/"), [["b"], []]);
  t.same(await listed("none/"), [[], []]);
  t.same(container.takeRequests(), []);
  t.equal(store.objectOf!("t/c/0/0"), KEY);
  t.equal(store.objectOf!("t/c/9"), undefined);
});

t.test("reads archives of unusual writers", async (t) => {
  const entries: readonly ZipEntry[] = [
    { name: "old", content: "first" },
    {
      name: "extra",
      content: "long extra fields",
      localExtra: new Uint8Array(500),
      directoryExtra: new Uint8Array(9),
    },
    { name: "wide", content: "ZIP64", isZip64: true },
    { name: "old", content: "the last one counts" },
    { name: Buffer.from("été"), content: "UTF-8 without flag", flags: 0 },
    { name: "né", content: "UTF-8" },
    { name: "ascii", content: "without flag", flags: 0 },
  ];
  const comment = Buffer.concat([Buffer.from("PK\x05\x06"), Buffer.alloc(60_000, "c")]);
  const cases: Record<string, ZipOptions> = {
    plain: {},
    zip64: { isZip64: true },
    extended: { isZip64: true, recordExtension: new Uint8Array(20) },
    prepended: { prepended: Buffer.from("#!/bin/sh\nPK\x03\x04") },
    both: { isZip64: true, prepended: randomBytes(1_000), comment: "x" },
    comment: { comment },
    longest: { comment: "c".repeat(65_535), isZip64: true },
  };
  for (const [name, options] of Object.entries(cases)) {
    const { store, container } = await open(entries, options);
    t.equal(await textOf(store, "old"), "the last one counts", name);
    t.equal(await textOf(store, "wide"), "ZIP64", name);
    container.takeRequests();
    t.equal(await textOf(store, "extra"), "long extra fields", name);
    t.equal(container.takeRequests().length, 2, `${name}: the rest is read`);
    t.equal(await textOf(store, "été"), "UTF-8 without flag", name);
    t.equal(await textOf(store, "né"), "UTF-8", name);
    t.equal(await textOf(store, "ascii"), "without flag", name);
    t.equal((await store.list!("")).objects.length, 6, name);
  }
  const many = await open(
    Array.from({ length: 65_537 }, (_, index) => ({ name: `c/${index}`, content: "" })),
  );
  t.equal(await textOf(many.store, "c/65536"), "", "entries counted modulo 65,536");
});

t.test("takes away a folder around the store, and what macOS adds", async (t) => {
  const wrapped = basic.map((entry) => ({ ...entry, name: `air.zarr/${entry.name}` }));
  const mac = [{ name: "__MACOSX/._air.zarr", content: "x" }, ...wrapped];
  for (const entries of [wrapped, mac]) {
    const { store } = await open(entries);
    t.equal(await textOf(store, "zarr.json"), "{}");
    t.equal(await textOf(store, "air.zarr/zarr.json"), undefined);
    t.same(await store.list!("t/c/0/"), { objects: ["0", "1"], prefixes: [] });
  }
  const two = await open([...wrapped, { name: "zarr.json", content: "root" }]);
  t.equal(await textOf(two.store, "zarr.json"), "root");
  const { store } = await open(basic.map((entry) => ({ ...entry, name: `t/${entry.name}` })));
  t.equal(await textOf(store, "t/zarr.json"), "{}", "a folder of another name may be a group");
});

t.test("leaves out names that lead elsewhere, and says so", async (t) => {
  const names = ["../a", "b/../c", "/d", "e\\f", "g//h", "./i", "", "j\0", "..."];
  const { store } = await open([
    ...names.map((name) => ({ name, content: "x" })),
    { name: Buffer.from([0xff, 0xfe]), content: "no UTF-8" },
    { name: Buffer.from([0x82, 0x74, 0x82]), content: "CP437", flags: 0 },
  ]);
  t.same(await store.list!(""), { objects: ["..."], prefixes: [] });
  t.equal(store.warnings.length, 10);
  t.match(store.warnings.at(-1), /^'.*' in 'a\/x.zip' is left out: it is no valid UTF-8$/);
  t.match(store.warnings[0], "'../a' in 'a/x.zip' is left out: it has a part that is empty or of dots");
  const many = await open(Array.from({ length: 100 }, (_, index) => ({ name: `/${index}`, content: "" })));
  t.equal(many.store.warnings.length, 21);
  t.equal(many.store.warnings.at(-1), "and 80 more entries in 'a/x.zip'");
});

t.test("names what it cannot read when it is read", async (t) => {
  const { store } = await open([
    { name: "encrypted", content: "x", flags: 0x0801 },
    { name: "lzma", content: "x", method: 14 },
    { name: "elsewhere", content: "x", disk: 1 },
    { name: "fine", content: "x" },
  ]);
  t.equal(await textOf(store, "fine"), "x");
  for (const [name, message] of [
    ["encrypted", /'encrypted'.*it is encrypted/],
    ["lzma", /'lzma'.*method 14/],
    ["elsewhere", /another part/],
  ] as const)
    await t.rejects(store.read(name), { ...code("unsupported"), message });
  await t.rejects(open(basic, { disk: 1 }), code("unsupported"));
  await t.rejects(open(basic, { entries: 3 }), code("invalid-metadata"));
  for (const bytes of ["", "PK", "not a zip", writeZip(basic).subarray(0, -1), randomBytes(100_000)]) {
    const container = createMemoryStore({ [KEY]: bytes });
    await t.rejects(openZipStore(container, KEY), {
      code: "invalid-metadata",
      message: /directory of a zip/,
    });
  }
});

t.test("passes on that the container fails, and when requests end", async (t) => {
  const { container, store } = await open(basic);
  const failure = new ZpublishError("source-unreadable", "503");
  container.failWith(failure);
  const reads: Promise<unknown>[] = [store.read("zarr.json"), store.read("none"), store.stat("none")];
  for (const read of reads) await t.rejects(read, failure);
  await t.rejects(openZipStore(container, KEY), failure);
  container.failWith(undefined);
  t.equal(await textOf(store, "zarr.json"), "{}");
  await t.rejects(store.read("zarr.json", { signal: AbortSignal.abort() }), { name: "AbortError" });
});

t.test("a damaged byte never gives other bytes, a crash or a hang", async (t) => {
  const entries: readonly ZipEntry[] = [
    { name: "a/0", content: "first content" },
    { name: "a/1", content: "deflated ".repeat(20), isDeflated: true },
    { name: "a/2", content: "wide", isZip64: true },
    { name: "b", content: "second" },
  ];
  const expected = new Map(entries.map(({ name, content }) => [name as string, content]));
  for (const isZip64 of [false, true]) {
    const whole = writeZip(entries, { isZip64, comment: "c" });
    const container = createMemoryStore();
    let refused = 0;
    for (let at = 0; at < whole.length; at++) {
      for (const change of [0x01, 0x80, 0xff]) {
        const damaged = Buffer.from(whole);
        damaged[at]! ^= change;
        container.put(KEY, damaged);
        try {
          const store = await openZipStore(container, KEY);
          // A name in the directory may be damaged such that an entry seems absent, which no checksum shows.
          for (const name of expected.keys()) {
            const text = await textOf(store, name).catch((error: unknown) => assertKnown(t, error));
            if (text === undefined) refused++;
            else if (text !== expected.get(name)) t.fail(`byte ${at} ^ ${change}: ${name} is ${text}`);
          }
          for (const name of (await store.list!("")).objects) {
            const text = await textOf(store, name).catch((error: unknown) => assertKnown(t, error));
            if (text !== undefined && text !== expected.get(name)) t.fail(`byte ${at} ^ ${change}: ${name}`);
          }
        } catch (error) {
          assertKnown(t, error);
          refused++;
        }
      }
    }
    t.ok(refused > whole.length, `${refused} reads refused`);
  }
});

function assertKnown(t: typeof import("tap").default | import("tap").Test, error: unknown): undefined {
  if (!(error instanceof ZpublishError)) t.fail(messageOf(error));
  else if (!["corrupt-chunk", "invalid-metadata", "unsupported"].includes(error.code)) t.fail(error.message);
}
