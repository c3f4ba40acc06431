import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { createEncodingPlan } from "../../src/zarr/plan/create-encoding-plan.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const MAX_CHUNK_BYTES = 4_096;
const { limits } = optionConfig(defaultValues({}));
const gzip = { id: "gzip", level: 1 };

t.test(
  "chunks that would decode to more than the limit are refused, and those that need no decoding are served",
  async (t) => {
    const location = join(await makeDirectory(t), "store");
    const large = { ...zarray, shape: [8_192], chunks: [8_192] };
    const texts = {
      ...zarray,
      dtype: "|O",
      filters: [{ id: "vlen-utf8" }],
      compressor: gzip,
      fill_value: "",
    };
    await writeFiles(location, {
      ".zgroup": zgroup,
      "small/.zarray": { ...zarray, compressor: gzip },
      "small/0": gzipSync("ab"),
      "large/.zarray": { ...large, compressor: gzip },
      "large/0": gzipSync(Buffer.alloc(8_192)),
      "stored/.zarray": large,
      "stored/0": Buffer.alloc(8_192, 3),
      "bomb/.zarray": { ...texts, shape: [2], chunks: [2] },
      "bomb/0": gzipSync(Buffer.alloc(2 ** 20)),
    });
    const none = { compressor: null };
    const { get, lines } = await startServer(t, {
      limits: { ...limits, maxChunkBytes: MAX_CHUNK_BYTES },
      datasets: [
        {
          id: "d",
          location,
          immutable: false,
          encoding: {},
          variables: { small: none, large: none, bomb: { compressor: { id: "zlib", level: 1 } } },
        },
      ],
    });
    const bytes = async (key: string) => {
      const answer = await get(`/datasets/d/zarr/${key}`);
      return [answer.status, Buffer.from(await answer.arrayBuffer())] as const;
    };
    t.same(await bytes("small/0"), [200, Buffer.from("ab")]);
    t.same(await bytes("stored/0"), [200, Buffer.alloc(8_192, 3)]);
    t.equal((await bytes("large/.zarray"))[0], 404);
    t.ok(
      lines.some((line) => /"path":"large".*at most 4096 bytes/.test(JSON.stringify(line))),
      "named in the log, with the reason",
    );
    t.equal(
      (await bytes("bomb/0"))[0],
      500,
      "a size that only the bytes show is found when they are decoded",
    );
  },
);

t.test("the limit changes neither bytes nor ETags", async (t) => {
  const asked = { compressor: null };
  const plans = [2 ** 20, 2 ** 30].map((maxChunkBytes) =>
    createEncodingPlan(storedArray(), asked, { maxChunkBytes }),
  );
  t.equal(plans[0]?.plan.id, plans[1]?.plan.id);
});
