import t from "tap";
import { isOnLocalFileSystem, parseMountInfo } from "../../../src/stores/file-calls.js";

const TABLE = `22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
31 27 0:41 / /data/with\\040blank ro,nosuid - fuse.sshfs host:/ ro,user_id=0
32 27 0:42 /exported /data/nfs rw,relatime shared:7 - nfs4 host:/exported rw,vers=4.2
33 32 0:43 / /data/nfs rw - tmpfs none rw
`;

t.test("the table of mounts is parsed, and the last of several at one point counts", async (t) => {
  t.same(Object.fromEntries(parseMountInfo(TABLE)), {
    "/proc": false,
    "/": true,
    "/data/with blank": false,
    "/data/nfs": true,
  });
  t.same([...parseMountInfo("")], []);
});

t.test(
  "a directory is on the file system that is mounted nearest above it",
  { skip: process.platform !== "linux" },
  async (t) => {
    t.equal(isOnLocalFileSystem("/proc/self/fd"), false);
    t.equal(isOnLocalFileSystem("/proc"), false);
  },
);
