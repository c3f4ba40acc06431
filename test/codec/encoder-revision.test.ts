import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import nodeZlib from "node:zlib";
import t from "tap";
import { createChunkLocator } from "../../src/chunk/chunk-version.js";
import {
  createEncoderRevision,
  createEncoderSample,
  encoderRevision,
} from "../../src/codec/encoder-revision.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import { createEncodingPlan, type EncodingRequest } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray as fakeArray, storedTree } from "../support/datasets/fake-source.js";
import { storedArray } from "../support/datasets/stored-array.js";

const GZIP: CodecSpec = { id: "gzip", level: 5 };

/** An encoder that can be made to write something else, and counts. */
function fakeEncoder() {
  const state = { library: "fake 1.0", written: 1, runs: 0 };
  const revisionOf = createEncoderRevision({
    gzip: {
      library: () => state.library,
      encode: (bytes, { level }) => {
        state.runs++;
        return Uint8Array.of(state.written, Number(level), bytes.length & 0xff);
      },
    },
    lz4: { library: () => state.library },
  });
  return Object.assign(state, { revisionOf });
}

t.test("an encoder that writes other bytes for the sample has another revision", async (t) => {
  const ours = fakeEncoder();
  const theirs = fakeEncoder();
  t.equal(ours.revisionOf(GZIP), theirs.revisionOf(GZIP), "the same encoder");
  const other = fakeEncoder();
  other.written = 2;
  t.not(other.revisionOf(GZIP), ours.revisionOf(GZIP), "other bytes");
  t.not(ours.revisionOf({ id: "gzip", level: 6 }), ours.revisionOf(GZIP), "another level");
  t.match(ours.revisionOf(GZIP), /^fake 1\.0 [0-9a-f]{16}$/);
});

t.test("a library that calls itself otherwise is another, whatever it writes, from then on", async (t) => {
  const fake = fakeEncoder();
  const [gzip, lz4] = [fake.revisionOf(GZIP), fake.revisionOf({ id: "lz4" })];
  t.equal(lz4, "fake 1.0", "without an encoder its word is enough");
  fake.library = "fake 1.1";
  t.not(fake.revisionOf(GZIP), gzip);
  t.equal(fake.revisionOf({ id: "lz4" }), "fake 1.1");
});

t.test("the sample is encoded once per codec and its options", async (t) => {
  const fake = fakeEncoder();
  const revisions = [GZIP, GZIP, { id: "gzip", level: 5, note: "of no meaning" }].map(fake.revisionOf);
  t.equal(new Set(revisions).size, 1);
  t.equal(fake.runs, 1);
  fake.revisionOf({ id: "gzip" });
  fake.revisionOf({ id: "gzip", level: 1 });
  t.equal(fake.runs, 2, "an option that is not said is its default");
  fake.revisionOf({ id: "blosc" });
  t.equal(fake.runs, 2, "no other codec's");
});

t.test("what Node encodes names its library, the machine and what was written", async (t) => {
  const { zlib, zstd } = process.versions as Record<string, string | undefined>;
  for (const id of ["gzip", "zlib"]) {
    const revision = encoderRevision({ id, level: 1 });
    t.ok(revision.startsWith(`zlib ${zlib} ${process.arch} `), revision);
    t.match(revision, / [0-9a-f]{16}$/);
    t.equal(encoderRevision({ id }), revision, "level 1 is the default");
  }
  const revision = encoderRevision({ id: "zstd", level: 3 });
  if (zstd === undefined) t.equal(revision, "numcodecs.js");
  else t.ok(revision.startsWith(`zstd ${zstd} ${process.arch} `), revision);
  t.equal(encoderRevision({ id: "shuffle", elementsize: 4 }), "", "what is the same everywhere says nothing");
  t.equal(encoderRevision({ id: "of another plugin" }), "");
});

t.test("another process on the same machine says the same", async (t) => {
  const codecs: CodecSpec[] = [GZIP, { id: "zlib", level: 9 }, { id: "zstd", level: 1 }];
  const module = new URL("../../src/codec/encoder-revision.js", import.meta.url).href;
  const script = `import(${JSON.stringify(module)}).then(({ encoderRevision }) =>
    console.log(JSON.stringify(${JSON.stringify(codecs)}.map(encoderRevision))))`;
  const said = execFileSync(process.execPath, ["-e", script], { encoding: "utf8" });
  t.same(JSON.parse(said), codecs.map(encoderRevision));
});

t.test("the sample is the same everywhere, and shows every setting that deflate has", async (t) => {
  const sample = createEncoderSample();
  t.equal(sample.length, 152 * 1024);
  t.equal(digestOf(sample), "d0bc7bf867db");
  const settings = [1, 2, 3, 4, 5, 6, 7, 8, 9].flatMap((level) =>
    // Their tables and hashes are of other sizes.
    [7, 8, 9].flatMap((memLevel) => [14, 15].map((windowBits) => ({ level, memLevel, windowBits }))),
  );
  const written = settings.map((options) => digestOf(nodeZlib.deflateRawSync(sample, options)));
  t.equal(new Set(written).size, settings.length);
});

t.test("plans that encode with it have another id, the others have not", async (t) => {
  const idOf = (codecs: CodecSpec[], asked: EncodingRequest, revision: string, absentIsServed = true) =>
    createEncodingPlan(storedArray({ codecs, fill: { served: 0, item: null, absentIsServed } }), asked, {
      encoderRevision: ({ id }) => (id === "gzip" ? revision : ""),
    }).plan.id;
  const differs = (...[codecs, asked, absent]: [CodecSpec[], EncodingRequest, boolean?]) =>
    idOf(codecs, asked, "one", absent) !== idOf(codecs, asked, "two", absent);
  t.ok(differs([], { compressor: GZIP }), "encoded");
  t.ok(differs([GZIP], { chunkShape: [2, 2] }), "decoded and encoded");
  t.ok(differs([GZIP], {}, false), "passed through, but absent chunks are encoded");
  t.notOk(differs([GZIP], {}), "passed through");
  t.notOk(differs([GZIP], { compressor: null }), "only decoded");
  t.notOk(differs([], { compressor: { id: "lz4" } }), "another codec");
});

t.test("ETags and cache keys of what is served have the revision of its encoder in them", async (t) => {
  const stored = fakeArray("a");
  const asked = { compressor: GZIP };
  const config = { id: "d", location: "here", immutable: false, encoding: asked, variables: {} };
  const snapshot = createSnapshot(config, storedTree([{ path: "/", attrs: {}, arrays: [stored] }]), "");
  const array = snapshot.arrays.get("a");
  if (array === undefined) throw new Error("the array is not served");
  const { plan } = createEncodingPlan(stored, asked, { encoderRevision });
  t.equal(array.plan.id, plan.id);
  const { plan: elsewhere } = createEncodingPlan(stored, asked, { encoderRevision: () => "another's" });
  const { locate } = createChunkLocator();
  const key = plan.served.gridShape.map(() => 0).join(".");
  const { access } = locate(snapshot, array, key);
  const { access: other } = locate(snapshot, { ...array, plan: elsewhere }, key);
  t.not(other.tag, access.tag);
  t.not(other.cachePrefix, access.cachePrefix);
});

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 12);
}

t.test("Blosc says its inner codec's", (t) => {
  const lz4 = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };
  t.equal(encoderRevision(lz4), "", "the kernel writes the same everywhere");
  t.equal(encoderRevision({ ...lz4, cname: "zlib" }), encoderRevision({ id: "zlib", level: 5 }));
  t.equal(encoderRevision({ id: "lz4", acceleration: 1 }), "");
  t.end();
});
