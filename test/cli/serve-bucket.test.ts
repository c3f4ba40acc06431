import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { PROGRAM, runProgram, runScript } from "../support/servers/run-program.js";
import { writeNetcdfPart } from "../support/write-parts.js";
import { makeDirectory } from "../support/write-store.js";

t.test("a prefix of a bucket, and a pattern of its objects, are served as folders are", async (t) => {
  const origin = await startS3Origin(t);
  const directory = await makeDirectory(t);
  for (const first of [0, 1]) {
    const name = `run-${first}.nc`;
    await writeNetcdfPart(directory, name, { first, count: 1 });
    await origin.put("bucket", `data/${name}`, await readFile(join(directory, name)));
  }
  const env = {
    AWS_ENDPOINT_URL_S3: origin.endpoint,
    AWS_ACCESS_KEY_ID: "key",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const args = ["runs=s3://bucket/data", "s3://bucket/data/*-1.nc", "--port", "0", "--no-cache"];
  const run = runScript(PROGRAM, ["serve", ...args], { env });
  await run.says("zpublish ready on ");
  const [, url = ""] = /ready on (\S+)/.exec(run.stdout()) ?? [];
  t.same(await (await fetch(`${url}/datasets`)).json(), ["run-1.nc", "runs~run-0.nc", "runs~run-1.nc"]);
  t.equal((await fetch(`${url}/datasets/runs~run-0.nc/zarr/v/0.0`)).status, 200);
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);

  const joined = await runProgram(["inspect", "s3://bucket/data/run-*.nc", "--concat", "time"], { env });
  t.match(joined, { code: 0, stderr: "" });
  t.match(joined.stdout, "2 files one behind the other along time, 2 steps\n");
  const listed = await runProgram(["inspect", "--json", "s3://bucket/data"], { env });
  t.match(JSON.parse(listed.stdout), {
    datasets: [
      { id: "run-0.nc", location: "s3://bucket/data/run-0.nc" },
      { id: "run-1.nc", location: "s3://bucket/data/run-1.nc" },
    ],
  });
});
