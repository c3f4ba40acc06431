import t from "tap";
import { checkS3Origin, ODD_KEYS } from "../support/origins/check-s3-origin.js";
import { startS3Origin } from "../support/origins/s3-origin.js";

t.test("fauxqs is read as S3 is, with and without credentials", async (t) => {
  const { endpoint, put, remove } = await startS3Origin(t);
  for (const key of ODD_KEYS) await put("data", key, key);
  await checkS3Origin(t, endpoint, "data", undefined);
  await checkS3Origin(t, endpoint, "data", { accessKeyId: "KEY", secretAccessKey: "SECRET" });
  await remove("data", "a");
  t.equal((await fetch(`${endpoint}/data/a`)).status, 404);
});
