import { LosslessNumber } from "lossless-json";
import t from "tap";
import {
  combineVersions,
  createEncodingPlan,
  type EncodingRequest,
} from "../../src/zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { storedArray } from "../support/datasets/stored-array.js";

type Changes = Parameters<typeof storedArray>[0];

const ZSTD = { id: "zstd", level: 3 };
const BLOSC = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 };

function kindOf(stored: StoredArray, asked: EncodingRequest = {}): string {
  const { kind, decode, encode } = createEncodingPlan(stored, asked).plan;
  const ids = (steps: typeof decode) => steps.map(({ codec }) => codec.id).join(",");
  return [kind, ids(decode), ids(encode)].join(" ").trim();
}

t.test("what is served as it is stored is passed through", async (t) => {
  const bz2 = { id: "bz2", level: 1 };
  const cases: readonly (readonly [Changes, EncodingRequest?])[] = [
    [{}],
    [{}, { chunkShape: [4, 5] }],
    [{}, { compressor: BLOSC, filters: null }],
    [{}, { compressor: { id: "blosc" }, filters: [] }],
    [{ codecs: [{ id: "unheard-of" }] }],
    [{ codecs: [bz2] }, { compressor: bz2 }],
    [{ shape: [3_000_000, 3_000_000], chunkShape: [2 ** 20, 2 ** 20] }],
    [{ axisOrder: [1, 0] }],
    [{ shape: [], chunkShape: [], codecs: [], compressorCount: 0 }],
    [
      { codecs: [{ id: "zlib", level: new LosslessNumber("1.0") }] },
      { compressor: { id: "zlib", level: 1 } },
    ],
  ];
  for (const [index, [changes, asked]] of cases.entries())
    t.equal(kindOf(storedArray(changes), asked), "passthrough", `case ${index}`);
});

t.test("only the codecs that differ are redone", async (t) => {
  t.equal(kindOf(storedArray(), { compressor: ZSTD }), "recompress blosc zstd");
  t.equal(kindOf(storedArray(), { compressor: null }), "recompress blosc");
  t.equal(kindOf(storedArray(), { compressor: { ...BLOSC, clevel: 9 } }), "recompress blosc blosc");
  const filtered = storedArray({ dtype: "<i4", codecs: [{ id: "delta", dtype: "<i4" }, ZSTD] });
  t.equal(kindOf(filtered, { compressor: BLOSC }), "recompress zstd blosc", "a common filter stays");
  t.equal(kindOf(filtered, { filters: null }), "recompress zstd,delta zstd");
  const opaque = storedArray({ codecs: [{ id: "unheard-of" }, ZSTD] });
  t.equal(kindOf(opaque, { compressor: null }), "recompress zstd", "also one that nobody knows");
  const bare = storedArray({ codecs: [], compressorCount: 0 });
  t.equal(kindOf(bare, { compressor: ZSTD, filters: [{ id: "shuffle" }] }), "recompress  shuffle,zstd");
});

t.test(
  "Blosc with lz4hc or blosclz is passed through, but encoded with lz4, and the document says so",
  async (t) => {
    for (const cname of ["lz4hc", "blosclz"]) {
      const asked = { ...BLOSC, cname, clevel: 7, shuffle: 2, blocksize: 4096 };
      const written = { ...asked, cname: "lz4" };
      const stored = storedArray({ codecs: [asked] });
      t.equal(kindOf(stored), "passthrough");
      t.same(createEncodingPlan(stored, {}).document.compressor, asked);
      t.equal(createEncodingPlan(stored, {}).replacedCname, undefined);

      const rechunked = createEncodingPlan(stored, { chunkShape: [5, 5] });
      t.same(rechunked.document.compressor, written, "stored, and to be encoded again");
      t.same(rechunked.plan.encode.at(-1)?.codec, written);
      t.equal(rechunked.replacedCname, cname);

      const recompressed = createEncodingPlan(storedArray({ codecs: [ZSTD] }), { compressor: asked });
      t.same(recompressed.document.compressor, written, "asked for");
      t.same(recompressed.plan.encode.at(-1)?.codec, written);
      t.equal(recompressed.replacedCname, cname);

      const same = storedArray({ codecs: [written] });
      t.equal(kindOf(same, { compressor: asked }), "passthrough", "stored as it would be encoded");

      const fill = { served: 0, item: new Uint8Array(4), absentIsServed: false };
      const { plan, document } = createEncodingPlan(storedArray({ codecs: [asked], fill }), {});
      t.equal(plan.kind, "passthrough");
      t.same(document.compressor, asked);
      t.same(plan.encodeAll.at(-1)?.codec, written, "a chunk of nothing but fill");
    }
  },
);

t.test("other chunks or an order that v2 cannot say are a rechunk", async (t) => {
  t.equal(kindOf(storedArray(), { chunkShape: [5, 5] }), "rechunk blosc blosc");
  t.equal(kindOf(storedArray(), { chunkShape: [5, 5], compressor: null }), "rechunk blosc");
  const { plan, document } = createEncodingPlan(
    storedArray({ shape: [4, 4, 4], chunkShape: [2, 2, 2], axisOrder: [1, 2, 0] }),
    {},
  );
  t.equal(plan.kind, "rechunk");
  t.equal(document.order, "C");
  t.same(plan.served.axisOrder, [0, 1, 2]);
  const short = storedArray({ shape: [4, 4, 4], chunkShape: [1, 2, 2], axisOrder: [1, 0, 2] });
  t.equal(kindOf(short), "passthrough", "axes of length 1 may stand anywhere");
  t.equal(kindOf(short, { chunkShape: [2, 2, 2] }), "rechunk blosc blosc");
});

t.test("codecs that only v3 has are taken off", async (t) => {
  const zstdAndSum = storedArray({ codecs: [ZSTD, { id: "crc32c" }], compressorCount: 0 });
  t.equal(kindOf(zstdAndSum), "recompress crc32c");
  t.match(createEncodingPlan(zstdAndSum, {}).document, { compressor: ZSTD, filters: null });
  const sumInside = storedArray({ codecs: [{ id: "crc32c" }, ZSTD] });
  t.equal(kindOf(sumInside), "recompress zstd,crc32c zstd");
  const sumOnly = storedArray({ codecs: [{ id: "crc32c" }], compressorCount: 0 });
  t.equal(kindOf(sumOnly), "recompress crc32c");
  t.match(createEncodingPlan(sumOnly, {}).document, { compressor: null, filters: null });
});

t.test("the document is complete and says what is served", async (t) => {
  const stored = storedArray({
    codecs: [
      { id: "shuffle", elementsize: 4 },
      { ...ZSTD, checksum: false },
    ],
  });
  t.strictSame(createEncodingPlan(stored, {}).document, {
    chunks: [4, 5],
    compressor: ZSTD,
    dimension_separator: ".",
    dtype: "<f4",
    fill_value: "NaN",
    filters: [{ id: "shuffle", elementsize: 4 }],
    order: "C",
    shape: [10, 12],
    zarr_format: 2,
  });
  const asked = createEncodingPlan(storedArray({ dtype: ">i8" }), {
    compressor: { id: "blosc", cname: "zstd" },
    filters: [{ id: "delta" }, { id: "shuffle" }],
    chunkShape: [1, 12],
  }).document;
  t.strictSame(asked.compressor, { id: "blosc", cname: "zstd", clevel: 5, shuffle: 1, blocksize: 0 });
  t.strictSame(asked.filters, [
    { id: "delta", dtype: ">i8", astype: ">i8" },
    { id: "shuffle", elementsize: 8 },
  ]);
  t.same(asked.chunks, [1, 12]);
  const empty = storedArray({ shape: [0, 5], chunkShape: [0, 5] });
  t.same(createEncodingPlan(empty, {}).document.chunks, [1, 5], "no chunk is of length 0");
  t.same(createEncodingPlan(empty, {}).plan.served.gridShape, [0, 1]);
});

t.test("arrays in memory have chunks and a compressor of their own", async (t) => {
  const stored: StoredArray = storedArray({
    chunkShape: [10, 12],
    codecs: [],
    compressorCount: 0,
    chunks: { kind: "memory", buffer: new SharedArrayBuffer(480), byteOffset: 0, byteLength: 480 },
    servedChunks: [5, 6],
    servedCompressor: ZSTD,
  });
  t.equal(kindOf(stored), "rechunk  zstd");
  t.equal(kindOf(stored, { chunkShape: [10, 12] }), "recompress  zstd");
  t.equal(kindOf(stored, { chunkShape: [10, 12], compressor: null }), "passthrough");
});

t.test("the id changes with what is served, and only with that", async (t) => {
  const idOf = (stored: StoredArray, asked: EncodingRequest = {}) =>
    createEncodingPlan(stored, asked).plan.id;
  const id = idOf(storedArray());
  t.match(id, /^[0-9a-f]{32}$/);
  t.equal(idOf(storedArray({ path: "elsewhere", attrs: { a: 1 } })), id);
  const others = [
    idOf(storedArray(), { compressor: ZSTD }),
    idOf(storedArray(), { compressor: { id: "zstd", level: 4 } }),
    idOf(storedArray(), { chunkShape: [4, 4] }),
    idOf(storedArray({ shape: [10, 13] })),
    idOf(storedArray({ dtype: "<f8" })),
    idOf(storedArray({ axisOrder: [1, 0] })),
    idOf(storedArray({ fill: { served: 0, item: null, absentIsServed: true } })),
    idOf(storedArray({ fill: { served: 0, item: null, absentIsServed: false } })),
  ];
  t.equal(new Set([id, ...others]).size, others.length + 1);
});

t.test("what cannot be done is refused by name, with the reason", async (t) => {
  const kept = { chunkShape: [2, 2] };
  const large = { chunkShape: [2 ** 15, 2 ** 15] };
  const integers = { dtype: "<i4" };
  const texts = { dtype: "|O", codecs: [{ id: "vlen-utf8" }, ZSTD] };
  const lzma = { codecs: [{ id: "lzma" }] };
  const absent = { served: null, item: null, absentIsServed: false };
  const delta = (options: object) => ({ filters: [{ id: "delta", ...options }] });
  const unsupported: readonly (readonly [Changes, EncodingRequest, RegExp])[] = [
    [lzma, { compressor: null }, /lzma is unknown/],
    [lzma, kept, /lzma/],
    [{ ...lzma, fill: absent }, {}, /absent chunks/],
    [{}, { compressor: { id: "lzma" } }, /blosc, zstd, gzip, zlib, lz4 or none, received lzma/],
    [{}, { compressor: { id: "shuffle" } }, /received shuffle/],
    [{}, { filters: [{ id: "zlib" }] }, /shuffle, delta or none, received zlib/],
    [{}, { compressor: { id: "zstd", checksum: true } }, /checksum/],
    [{}, { chunkShape: [4] }, /expected 2 lengths, received 1/],
    [{}, delta({ dtype: "<f4" }), /float32/],
    [{ dtype: "|S4" }, delta({ dtype: "<i4" }), /bytes32/],
    [integers, delta({ astype: "|i1" }), /could lose/],
    [{ codecs: [{ id: "delta", dtype: "<f4" }, ZSTD] }, kept, /"filters": null/],
    [{ codecs: [{ ...BLOSC, cname: "snappy" }] }, kept, /snappy/],
    [texts, kept, /no fixed size/],
    [texts, { filters: null }, /must stay/],
    [
      { dtype: "|S3", shape: [5], chunkShape: [5] },
      { filters: [{ id: "shuffle", elementsize: 4 }] },
      /15 bytes/,
    ],
    [large, { compressor: null }, /stored chunks of at most 1073741824 bytes/],
    [{}, large, /served chunks/],
    [{}, { chunkShape: [2 ** 14, 2 ** 14] }, /536870912/],
    [{ codecs: [{ id: "gzip", level: 12 }] }, kept, /gzip with level 12 can be decoded but not encoded/],
    [{ codecs: [{ id: "zstd", level: "best" }] }, kept, /zstd with level "best"/],
    [{ codecs: [{ ...BLOSC, clevel: 10 }] }, kept, /blosc with clevel 10 can be decoded but not encoded/],
    [{ codecs: [{ ...BLOSC, cname: "foo" }] }, kept, /blosc with cname "foo"/],
    [{ codecs: [{ id: "lz4", acceleration: "fast" }] }, kept, /lz4 with acceleration "fast"/],
  ];
  const invalid: typeof unsupported = [
    [{}, { compressor: { id: "gzip", level: 10 } }, /from 0 to 9, received 10/],
    [{}, { compressor: { id: "gzip", level: 1.5 } }, /received 1.5/],
    [{}, { compressor: { id: "gzip", lvl: 1 } }, /among level, received lvl/],
    [{}, { compressor: { id: "blosc", cname: "snappy" } }, /received "snappy"/],
    [{}, { chunkShape: [4, 0] }, /at least 1, received 0/],
    [{}, { chunkShape: [4, 2.5] }, /received 2.5/],
    [integers, delta({ dtype: "<i2" }), /4 bytes/],
    [integers, delta({ dtype: ">i4" }), /byte order/],
  ];
  for (const [code, cases] of Object.entries({ unsupported, "invalid-config": invalid })) {
    for (const [changes, asked, message] of cases) {
      const plan = () => createEncodingPlan(storedArray(changes), asked);
      t.throws(plan, { code, message }, String(message));
      t.throws(plan, { message: /^array 'g\/t': / }, String(message));
    }
  }
  t.throws(() => createEncodingPlan(storedArray(), { compressor: null }, { maxChunkBytes: 79 }), {
    message: /at most 79/,
  });
});

t.test("filters keep what they are made for", async (t) => {
  t.equal(
    kindOf(storedArray({ dtype: "<M8[s]" }), { filters: [{ id: "delta" }] }),
    "recompress blosc delta,blosc",
    "times are integers",
  );
  t.equal(
    kindOf(storedArray({ codecs: [{ id: "bitround", keepbits: 5 }, ZSTD] }), { chunkShape: [2, 2] }),
    "rechunk zstd,bitround bitround,zstd",
  );
  t.equal(
    kindOf(storedArray({ dtype: "|O", codecs: [{ id: "vlen-utf8" }, ZSTD] }), { compressor: BLOSC }),
    "recompress zstd blosc",
  );
});

t.test("a served chunk of too many stored ones is refused", async (t) => {
  const stored = storedArray({ shape: [1_000_000, 12], chunkShape: [1, 12] });
  t.throws(() => createEncodingPlan(stored, { chunkShape: [1_000_000, 12] }), {
    code: "unsupported",
    message: /at most 65536 stored ones, received \(1000000, 12\), which may be 1000000 of \(1, 12\)/,
  });
  t.equal(createEncodingPlan(stored, { chunkShape: [60_000, 6] }).plan.kind, "rechunk");
});

t.test(
  "levels are kept as stored where they can be written, and need not be for chunks of fill",
  async (t) => {
    const stored = [
      { id: "gzip", level: -1 },
      { id: "zlib", level: new LosslessNumber("9") },
      { id: "zstd", level: 30 },
      { id: "zstd", level: null },
    ];
    for (const codec of stored) {
      const { plan } = createEncodingPlan(storedArray({ codecs: [codec] }), { chunkShape: [2, 2] });
      t.equal(plan.encode[0]?.codec.id, codec.id);
    }
    const fill = { served: null, item: null, absentIsServed: false };
    const { plan } = createEncodingPlan(storedArray({ codecs: [{ id: "zlib", level: 12 }], fill }), {});
    t.equal(plan.kind, "passthrough");
    t.same(plan.encodeAll[0]?.codec, { id: "zlib", level: 1 });
  },
);

t.test("chunks whose codecs differ have steps of their own", async (t) => {
  const zlib = { id: "zlib", level: 1 };
  const shuffle = { id: "shuffle", elementsize: 4 };
  const stored = storedArray({ codecs: [shuffle, zlib], variants: [[zlib], []] });
  const stepsOf = (asked: EncodingRequest) => {
    const { kind, variants } = createEncodingPlan(stored, asked).plan;
    const ids = (steps: readonly { readonly codec: { readonly id: string } }[] = []) =>
      steps.map(({ codec }) => codec.id).join(",");
    return [kind, ...(variants?.decode.map(ids) ?? []), ids(variants?.encode)];
  };
  t.same(stepsOf({}), ["passthrough", "zlib", "", "shuffle,zlib"]);
  t.same(
    stepsOf({ compressor: ZSTD }),
    ["recompress", "zlib", "", "shuffle,zstd"],
    "filters are encoded, too",
  );
  t.same(stepsOf({ chunkShape: [5, 5] }), ["rechunk", "zlib", "", ""]);
  const ids = [undefined, [[zlib]], [[zlib], []], [[shuffle, zlib]]].map(
    (variants) =>
      createEncodingPlan(storedArray({ codecs: [zlib], ...(variants && { variants }) }), {}).plan.id,
  );
  t.equal(new Set(ids).size, ids.length, "ids differ");
});

t.test("an array is refused by name if its chunks that differ cannot be made as served", async (t) => {
  const reasonOf = (changes: Changes) => () =>
    createEncodingPlan(storedArray(changes), {}, { maxChunkBytes: 4 * 2 ** 30 });
  const reason = "array 'g/t': some of its chunks have other codecs and would have to be decoded, but ";
  for (const [changes, problem] of [
    [{ variants: [[], [{ id: "unheard-of" }]] }, "codec unheard-of is unknown here"],
    [{ codecs: [{ id: "bz2", level: 1 }], variants: [[]] }, "codec bz2 is unknown here"],
    [{ dtype: "|O", codecs: [{ id: "vlen-utf8" }], variants: [[]] }, "items of object have no fixed size"],
  ] as const)
    t.throws(reasonOf(changes), { code: "unsupported", message: reason + problem });
  t.throws(reasonOf({ shape: [2 ** 30], chunkShape: [2 ** 28], variants: [[]] }), {
    message: /expected served chunks of at most 536870912 bytes/,
  });
  const hc = { ...BLOSC, cname: "lz4hc" };
  const { document, plan } = createEncodingPlan(storedArray({ codecs: [hc], variants: [[]] }), {});
  t.equal(document.compressor?.cname, "lz4hc");
  t.equal(plan.variants?.encode[0]?.codec.cname, "lz4", "decodes as any Blosc does");
});

/** A joined array, whose chunks need not be those of parts. */
function joinedArray(changes: Changes = {}, axis = 0): StoredArray {
  const openReader = () => {
    throw new Error("expected no reader");
  };
  const chunks = { kind: "parts", store: "s", path: "p", axis, openReader } as const;
  return storedArray({ variants: [[]], chunks, ...changes });
}

t.test("pieces of a joined array arrive as raw items in every kind of plan", async (t) => {
  for (const asked of [{}, { compressor: ZSTD }, { chunkShape: [5, 5] }, { compressor: null }]) {
    const { plan } = createEncodingPlan(joinedArray(), asked);
    t.same(plan.variants?.decode, [[]]);
    const codecs = plan.variants?.encode.map(({ codec }) => codec.id);
    t.same(
      codecs,
      plan.kind === "rechunk" || asked.compressor === null ? [] : [(asked.compressor ?? BLOSC).id],
    );
  }
  t.throws(() => createEncodingPlan(joinedArray({ codecs: [{ id: "bz2", level: 1 }] }), {}), {
    message:
      "array 'g/t': some of its chunks would have to be put together from several stored ones, but codec bz2 is unknown here",
  });
  const texts = { dtype: "|O", codecs: [{ id: "vlen-utf8" }], compressorCount: 0 as const };
  t.equal(kindOf(joinedArray({ ...texts, variants: [] })), "passthrough");
});

t.test("the id of a plan stays while a joined array grows along its axis", async (t) => {
  const idOf = (array: StoredArray, asked: EncodingRequest = {}) => createEncodingPlan(array, asked).plan.id;
  for (const asked of [{}, { compressor: ZSTD }, { chunkShape: [5, 5] }]) {
    const long = { shape: [99, 12], chunkShape: [4, 5] };
    t.equal(idOf(joinedArray(long), asked), idOf(joinedArray({ chunkShape: [4, 5] }), asked));
    t.not(idOf(storedArray(long), asked), idOf(storedArray({ chunkShape: [4, 5] }), asked), "of one store");
    t.not(
      idOf(joinedArray(long, 1), asked),
      idOf(joinedArray({ chunkShape: [4, 5] }, 1), asked),
      "another axis",
    );
  }
});

t.test("filters that a source names are served in place of the stored ones", async (t) => {
  const pad = { id: "pad", byteLength: 8 };
  const stored = storedArray({ codecs: [pad, { id: "shuffle", elementsize: 4 }], compressorCount: 0 });
  const { document, plan } = createEncodingPlan(
    { ...stored, servedFilters: [], servedCompressor: BLOSC },
    {},
  );
  t.same([document.filters, document.compressor], [null, BLOSC]);
  t.equal(plan.kind, "recompress");
  t.same(
    createEncodingPlan(stored, {}).document.filters,
    [{ id: "shuffle", elementsize: 4 }],
    "no internal one",
  );
  const asked = createEncodingPlan(
    { ...stored, servedFilters: [] },
    { filters: [{ id: "shuffle", elementsize: 2 }] },
  );
  t.same(asked.document.filters, [{ id: "shuffle", elementsize: 2 }], "the operator's go first");
});

t.test("one version stays itself, several become one short text", async (t) => {
  t.equal(combineVersions(["a.1"]), "a.1");
  t.match(combineVersions([undefined]), /^[0-9a-z.]+$/);
  const several = combineVersions(["a.1", undefined, "b.2"]);
  t.match(several, /^[0-9a-z]{20}$/);
  t.equal(combineVersions(["a.1", undefined, "b.2"]), several);
  t.not(combineVersions(["a.1", "b.2", undefined]), several);
  t.not(combineVersions(["a.1", "b.2"]), several);
});
