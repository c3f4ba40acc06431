import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { readProfiles } from "../../bench/profile/read-profiles.js";
import { type CallFrame, stageOf } from "../../bench/profile/stages.js";
import { parseServerTiming } from "../../bench/server-timing.js";

const frame = (functionName: string, url = ""): CallFrame => ({ functionName, url });
const ROOT = frame("(root)");
const own = (file: string) => `file:///app/dist/src/${file}`;

t.test("native code counts for whoever called it", (t) => {
  const sender = frame("pump", own("http/body-sender.js"));
  t.equal(
    stageOf([frame("tryEnd"), sender, frame("cork"), frame("cork", own("http/exchange.js")), ROOT]),
    "write",
  );
  t.equal(
    stageOf([frame("openAsync", "node:fs"), frame("read", own("source/store-files.js")), ROOT]),
    "read",
  );
  t.equal(stageOf([frame("getBinaryFast"), frame("get", own("cache/lmdb-store.js")), ROOT]), "cache");
  t.equal(stageOf([frame("(program)"), ROOT]), "parse");
  t.equal(stageOf([frame("(garbage collector)"), ROOT]), "garbage");
  t.equal(stageOf([frame("(idle)"), ROOT]), "idle");
  t.equal(stageOf([frame("match", own("http/router.js")), ROOT]), "route");
  t.end();
});

t.test("what is written into the cache is not the look-up in it, and a version is no read", (t) => {
  const put = [frame("put", own("cache/disk-chunk-cache.js")), frame("make", own("chunk/serve-chunk.js"))];
  t.equal(
    stageOf([frame("crc32", "node:zlib"), frame("packStoredValue", own("cache/stored-value.js")), ...put]),
    "keep",
  );
  t.equal(
    stageOf([
      frame("getStats"),
      frame("usage", own("cache/lmdb-store.js")),
      frame("writePending", own("cache/store-writer.js")),
    ]),
    "keep",
  );
  t.equal(
    stageOf([frame("lstat"), frame("lstat", "node:fs"), frame("stat", own("source/store-files.js")), ROOT]),
    "look-up",
  );
  t.end();
});

t.test("codecs are told apart by what they do", (t) => {
  const wasm = frame("wasm-function[88]", "wasm://wasm/0021876a");
  t.equal(
    stageOf([wasm, frame("encode", "file:///app/node_modules/numcodecs/dist/zstd.js"), ROOT]),
    "encode",
  );
  t.equal(
    stageOf([
      frame("unshuffleBytes", own("codec/plain/byte-shuffle.js")),
      frame("decodeBlosc", own("codec/blosc/decode-blosc.js")),
    ]),
    "decode",
  );
  // Frames of the kernel's own, which does both, between its code and whoever called it.
  const kernel = [frame("lz4", "wasm://wasm/kernel"), frame("run", own("codec/kernel/kernel.js"))];
  t.equal(stageOf([...kernel, frame("encodeLz4", own("codec/kernel/kernel.js"))]), "encode");
  t.equal(stageOf([...kernel, frame("unshuffleBits", own("codec/kernel/kernel.js"))]), "decode");
  t.equal(stageOf([...kernel, frame("encodeBlosc", own("codec/blosc/encode-blosc.js"))]), "encode");
  t.equal(
    stageOf([frame("postMessage"), frame("onMessage", "file:///app/node_modules/piscina/dist/worker.js")]),
    "transfer",
  );
  t.equal(stageOf([frame("atomicsWaitLoop", "file:///app/node_modules/piscina/dist/worker.js")]), "parked");
  t.end();
});

t.test("a profile is summed up by stage within a window of time", (t) => {
  const directory = t.testdir({});
  mkdirSync(join(directory, "profiles"));
  const profile = {
    nodes: [
      { id: 1, callFrame: ROOT, children: [2, 3] },
      { id: 2, callFrame: frame("(idle)") },
      { id: 3, callFrame: frame("match", own("http/router.js")), children: [4] },
      { id: 4, callFrame: frame("getUrl") },
    ],
    startTime: 1_000,
    samples: [2, 3, 4, 2, 3],
    timeDeltas: [0, 100, 200, 300, 400],
  };
  writeFileSync(
    join(directory, "profiles", "CPU.20260101.000000.77.0.001.cpuprofile"),
    JSON.stringify(profile),
  );
  const read = (beginMicros: number, endMicros: number) =>
    readProfiles(join(directory, "profiles"), { beginMicros, endMicros });
  t.same(read(0, 10_000), [
    { isMain: true, seconds: { idle: (100 + 400) / 1e6, route: (200 + 300 + 0) / 1e6 } },
  ]);
  t.same(read(1_100, 1_300), [{ isMain: true, seconds: { route: 200 / 1e6 } }]);
  t.throws(() => readProfiles(directory, { beginMicros: 0, endMicros: 1 }), {
    message: /expected CPU profiles/,
  });
  t.end();
});

t.test("Server-Timing is read, and anything else refused", (t) => {
  t.same(parseServerTiming("cache;dur=0.008, read;dur=2.5"), { cache: 0.008, read: 2.5 });
  t.same(parseServerTiming(""), {});
  t.throws(() => parseServerTiming("fast"), { message: /expected stages of Server-Timing, received fast/ });
  t.end();
});
