import { messageOf } from "../../src/errors.js";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";

// A process of its own, since connections are made once per process: URLs of objects → a line each of what was read.
setSourceTimeout(500);
for (const url of process.argv.slice(2)) {
  const end = url.lastIndexOf("/") + 1;
  const line = await openByteStore(url.slice(0, end), [])
    .read(url.slice(end))
    .then((found) => (found === undefined ? "absent" : Buffer.from(found.bytes).toString()), messageOf);
  console.log(line);
}
process.exit();
