/** A process that holds the write lock of a store, for tests: `node lock-holder.js DIRECTORY`. */
import { open } from "lmdb";

const environment = open({
  path: process.argv[2]!,
  noSubdir: false,
  maxDbs: 4,
  maxReaders: 1024,
  mapSize: 64 * 1024 ** 3,
  encoding: "binary",
  keyEncoding: "binary",
});
environment.transactionSync(() => {
  process.stdout.write("held\n");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
});
