import t from "tap";
import { cacheStamp, storeDirectoryOf } from "../../src/cache/cache-directory.js";
import { openTendedChunkCache } from "../../src/cache/open-chunk-cache.js";
import { probeLmdbStore } from "../../src/cache/probe-lmdb-store.js";
import { createLog } from "../../src/observe/log.js";
import { childrenOf, until } from "../processes/process-table.js";
import { chunkOf, keyOf, VERSION } from "./cache-process.js";

const skip = process.platform === "linux" ? false : "only Linux tells the children of a process";
const MAX_BYTES = 16 * 1024 ** 2;

t.test("only a signal of its own doing says that a store is damaged", { skip }, async (t) => {
  const directory = t.testdir();
  const cache = await openTendedChunkCache({
    directory,
    maxBytes: MAX_BYTES,
    version: VERSION,
    log: createLog("silent"),
  });
  cache?.put(keyOf(1), chunkOf(1));
  await cache?.settle();
  await cache?.close();
  const stamp = cacheStamp(VERSION);
  const store = storeDirectoryOf(directory, stamp);
  const probe = async (signal?: NodeJS.Signals) => {
    const before = childrenOf(process.pid);
    const probed = probeLmdbStore(store, { maxBytes: MAX_BYTES, stamp });
    if (signal !== undefined) {
      const started = () => childrenOf(process.pid).filter((pid) => !before.includes(pid));
      await until(() => started().length > 0);
      process.kill(started()[0] as number, signal);
    }
    return probed;
  };
  t.same(await probe(), { status: "sound" });
  // To a group of processes, at the end of a session, from the system for want of memory.
  for (const signal of ["SIGHUP", "SIGINT", "SIGTERM", "SIGKILL"] as const) {
    t.same(await probe(signal), { status: "sound" }, signal);
  }
  for (const signal of ["SIGSEGV", "SIGBUS", "SIGABRT"] as const) {
    t.same(await probe(signal), { status: "damaged", reason: signal }, signal);
  }
});
