import fc from "fast-check";
import t from "tap";
import { type Axis, cellAxis, createAxis, dataExtent } from "../../src/explore/axis.js";
import { LAST, MISSING, type ShowRequest, UNREAD } from "../../src/explore/protocol.js";
import { middleCells, runsByChunk, screenTable } from "../../src/explore/worker/picture/paint-loops.js";
import { type Answer, createExploreClient, openStore } from "../support/explore/explore-client.js";
import { type ServedArray, type StoreServer, startStore } from "../support/explore/store-server.js";
import { axisValues } from "../support/explore/stub-worker.js";

const lengths = fc.integer({ min: 1, max: 300 });
const pixelCounts = fc.integer({ min: 1, max: 200 });
const share = fc.double({ min: -0.5, max: 1.5, noNaN: true });

t.test(
  "a pixel shows the cell under its middle, and its mean the cells with their centres in it",
  async () => {
    fc.assert(
      fc.property(lengths, pixelCounts, share, share, fc.boolean(), (length, pixels, from, to, isMean) => {
        const [begin, end] = [from * length - 0.5, to * length - 0.5];
        fc.pre(Math.abs(end - begin) > 1e-3);
        const axis = cellAxis(length);
        const table = screenTable(axis, begin, end, pixels, isMean);
        const width = (end - begin) / pixels;
        return middleCells(axis, begin, end, pixels).every((middle, pixel) => {
          const [first, last] = [table.from[pixel]!, table.to[pixel]!];
          if (middle === -1) return first === -1 && last === -1;
          if (!isMean || table.density <= 1) return first === middle && last === middle + 1;
          const middleOfPixel = begin + (pixel + 0.5) * width;
          const holdsCentres = [first, last - 1].every(
            (cell) => Math.abs(cell - middleOfPixel) <= Math.abs(width) / 2 + 1e-6,
          );
          return holdsCentres || (first === middle && last === middle + 1);
        });
      }),
    );
  },
);

t.test("means leave no cell out between the first and the last one that is visible", async () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 50, max: 3000 }),
      fc.integer({ min: 5, max: 40 }),
      fc.boolean(),
      (length, pixels, isReversed) => {
        const [least, greatest] = dataExtent(cellAxis(length));
        const [begin, end] = isReversed ? [greatest, least] : [least, greatest];
        const table = screenTable(cellAxis(length), begin, end, pixels, true);
        const seen = new Uint8Array(length);
        for (let pixel = 0; pixel < pixels; pixel++)
          for (let cell = table.from[pixel]!; cell < table.to[pixel]!; cell++) seen[cell]!++;
        return seen.every((count) => count === 1);
      },
    ),
  );
});

t.test("longitudes repeat beyond a turn, and a global grid leaves no pixel empty", async (t) => {
  const axis = longitudes(0, 2.5, 144);
  const table = middleCells(axis, -181.25, 538.75, 288);
  t.notOk(table.includes(-1));
  t.same(table.slice(0, 144), table.slice(144), "both turns are equal");
  t.equal(table[0], 72, "180° W is in the middle of 0 to 360");
  const mean = screenTable(axis, -180, 180, 36, true);
  for (let pixel = 0; pixel < 36; pixel++)
    t.ok(mean.to[pixel]! - mean.from[pixel]! <= 5, "not across the seam");
});

t.test("runs by chunk put every pixel into its chunk, at any level", async () => {
  fc.assert(
    fc.property(
      lengths,
      pixelCounts,
      fc.integer({ min: 1, max: 50 }),
      fc.constantFrom(1, 2, 4, 8),
      (length, pixels, chunk, factor) => {
        const axis = cellAxis(length);
        const table = screenTable(axis, -0.5, length - 0.5, pixels, false);
        const runs = runsByChunk(table, factor, chunk, 3);
        const found = new Int32Array(pixels).fill(-1);
        const firsts: number[] = [];
        for (const [index, run] of runs) {
          run.pixels.forEach((pixel, place) => {
            found[pixel] = index * chunk + run.offsets[place]! / 3;
            if (run.isFirst[place] === 1) firsts.push(found[pixel]!);
          });
          if (run.cells !== run.isFirst.filter((first) => first === 1).length) return false;
        }
        return (
          found.every((cell, pixel) => cell === Math.floor(table.from[pixel]! / factor)) &&
          new Set(firsts).size === firsts.length
        );
      },
    ),
  );
});

function longitudes(first: number, step: number, length: number): Axis {
  const numbers = Array.from({ length }, (_, index) => first + index * step);
  return createAxis(length, axisValues(numbers), { isLongitude: true });
}

const LAT = axisArray("lat", [60, 50, 40, 30], "degrees_north");
const LON = axisArray("lon", [0, 60, 120, 180, 240, 300], "degrees_east");

/** 4 × 6 values 0 to 23, in chunks of 2 × 3. */
const PLAIN: ServedArray = {
  dtype: "<i2",
  shape: [4, 6],
  chunks: [2, 3],
  dims: ["lat", "lon"],
  values: range(24),
};
const ARRAYS = { lat: LAT, lon: LON, v: PLAIN };

t.test("longitudes from 0 to 360 are drawn about Greenwich, latitudes north up", async (t) => {
  const { client } = await open(t, ARRAYS);
  const frame = await client.ask(map("v", 6, 4), "frame");
  // 180° W is the fourth column; north is the first row, as 60° is stored first.
  t.same(
    valuesOf(frame),
    [0, 1, 2, 3].flatMap((row) => [3, 4, 5, 0, 1, 2].map((column) => row * 6 + column)),
  );
  t.match(frame, { done: 4, total: 4, cells: 24, missing: 0, level: 0 });
});

t.test("missing is what the packing says", async (t) => {
  const arrays = {
    ...ARRAYS,
    packed: { ...PLAIN, fill: 23, attrs: { scale_factor: 0.5, add_offset: 10, valid_range: [1, 22] } },
    unsigned: {
      ...PLAIN,
      dtype: "|i1",
      values: range(24).map((value) => value + 120),
      attrs: { _Unsigned: "true", _FillValue: -113 },
    },
  };
  const { client } = await open(t, arrays);
  const packed = await client.ask(
    { ...cells("packed"), range: { low: 10, high: 22, isLog: false } },
    "frame",
  );
  t.equal(packed.missing, 2);
  t.equal(packed.pixels[1], 2 + Math.round((0.5 / 12) * 251));
  const unsigned = await client.ask(
    { ...cells("unsigned"), range: { low: 0, high: 251, isLog: false } },
    "frame",
  );
  t.same([...unsigned.pixels.slice(0, 3)], [122, 123, 124], "beyond 127");
  t.same([unsigned.missing, unsigned.pixels[23]], [1, MISSING], "143 is -113");
});

t.test("pixels over many cells are their mean, but not of categories, or in motion", async (t) => {
  const values = range(64).map((index) => (index % 8 === 0 ? -1 : index));
  const big: ServedArray = { ...PLAIN, shape: [8, 8], chunks: [3, 5], dims: ["a", "b"], values, fill: -1 };
  const { client } = await open(t, {
    big,
    flags: { ...big, attrs: { flag_values: [0, 1], flag_meanings: "a b" } },
  });
  const request = { ...cells("big", 2, 2, 8, 8), range: { low: 0, high: 63, isLog: false } };
  const mean = await client.ask(request, "frame");
  const expected = [0, 1].flatMap((y) =>
    [0, 1].map((x) => {
      const inPixel = values.filter(
        (value, index) => value !== -1 && index >> 5 === y && (index & 7) >> 2 === x,
      );
      const sum = inPixel.reduce((total, value) => total + value, 0);
      return 2 + Math.round((sum / inPixel.length / 63) * 251);
    }),
  );
  t.same([...mean.pixels], expected);
  t.match(mean, { cells: 64, missing: 8 });
  const nearest = [18, 22, 50, 54].map((value) => 2 + Math.round((value / 63) * 251));
  const moving = await client.ask({ ...request, isMoving: true }, "frame");
  t.same([...moving.pixels], nearest);
  const flags = await client.ask({ ...request, selection: { variable: "flags", at: [0, 0] } }, "frame");
  t.same([...flags.pixels], nearest);
});

t.test("a picture comes in parts, and what is not read yet is marked", async (t) => {
  const { client, store } = await open(t, ARRAYS);
  store.hold(/v\/1\.1/);
  const id = client.send(cells("v"));
  const first = (await client.waitFor(
    (answer) => answer.id === id && answer.kind === "frame" && answer.done === 3,
  )) as Answer<"frame">;
  t.match(first, { total: 4 });
  t.equal(first.pixels[23], UNREAD);
  t.same(first.pixels[0], byteOf(0));
  store.hold(undefined);
  const last = (await client.waitFor(
    (answer) => answer.kind === "frame" && answer.done === answer.total,
  )) as Answer<"frame">;
  t.equal(last.pixels[23], byteOf(23));
  t.equal(store.requests.filter((path) => path.startsWith("v/")).length, 4, "each chunk once");
});

t.test("chunks that a new picture does not want are cancelled, the others are kept", async (t) => {
  const { client, store } = await open(t, ARRAYS);
  store.hold(/^v\//);
  client.send(cells("v"));
  await store.waiting(4);
  const left = { left: -0.5, right: 2.5, bottom: 3.5, top: -0.5 };
  const id = client.send({ ...cells("v"), viewport: { box: left, width: 3, height: 4, inCells: true } });
  await store.waiting(2);
  t.same([...store.aborted].sort(), ["v/0.1", "v/1.1"]);
  store.hold(undefined);
  const frame = await client.waitFor(
    (answer) => answer.id === id && answer.kind === "frame" && answer.done === 2,
  );
  t.match(frame, { total: 2 });
  t.equal(store.requests.filter((path) => path.startsWith("v/")).length, 4, "none was asked for again");
  t.notOk(
    client.answers.some((answer) => answer.id === id - 1 && answer.kind === "frame" && answer.done > 2),
  );
});

t.test("a cancelled picture is no longer read, nor answered", async (t) => {
  const { client, store } = await open(t, ARRAYS);
  store.hold(/^v\//);
  const id = client.send(cells("v"));
  await store.waiting(4);
  // A picture that takes long is answered before its chunks are there.
  await client.waitFor((answer) => answer.id === id);
  const before = client.answers.length;
  client.send({ kind: "cancel", request: id });
  await store.waiting(0);
  t.equal(store.aborted.length, 4);
  store.hold(undefined);
  await client.ask(cells("v"), "frame");
  t.notOk(client.answers.slice(before).some((answer) => answer.id === id));
});

t.test("absent, gone and offline are told apart", async (t) => {
  const { client, store } = await open(t, ARRAYS);
  store.answer(/v\/0\.1/, 404, `{"detail":"Dataset 'x' not found"}`);
  const id = client.send(cells("v"));
  const gone = await client.waitFor((answer) => answer.id === id && answer.kind === "failed");
  t.match(gone, {
    sentence: "Chunk 0.1 of v no longer exists: Dataset 'x' not found.",
    mayRetry: false,
  });
  await store.close();
  const other = client.send({ ...map("v", 6, 4), selection: { variable: "v", at: [0, 0] } });
  const offline = await client.waitFor((answer) => answer.id === other && answer.kind === "failed");
  t.match(offline, { sentence: /^The server does not answer/, mayRetry: true, requestId: undefined });
});

t.test("chunks that were used longest ago are forgotten, and read again", async (t) => {
  const { client, store } = await open(t, ARRAYS, 1);
  for (const times of [1, 2]) {
    t.same(valuesOf(await client.ask(cells("v"), "frame")), range(24));
    t.ok(store.requests.filter((path) => path.startsWith("v/")).length > 4 * (times - 1));
  }
});

t.test("of too many chunks, every n-th is read, and stands for those beside it", async (t) => {
  const shape = [2000, 3];
  const values = range(6000).map((index) => Math.floor(index / 3));
  const rows: ServedArray = { dtype: "<f4", shape, chunks: [1, 3], dims: ["time", "x"], values };
  const { client, store } = await open(t, { rows });
  const request = { ...cells("rows", 3, 125, 3, 2000), range: { low: 0, high: 2008, isLog: false } };
  const frame = await client.ask(request, "frame");
  const whole = { chunks: 2000, bytes: 24_000 };
  t.match(frame.part, { everyRow: 16, everyColumn: 1, isOfRows: true, share: 1, whole });
  t.equal(frame.total, 125, "a row of pixels is one of cells");
  const isNear = frame.pixels.every((byte, pixel) => {
    const shown = ((byte - 2) / 251) * 2008;
    const under = 16 * (Math.floor(pixel / 3) + 0.5);
    return Math.abs(shown - under) <= 8 + 8;
  });
  t.ok(isNear, "the nearest row");
  store.requests.length = 0;
  const all = await client.ask({ ...request, isConfirmed: true }, "frame");
  t.match(all, { part: undefined, total: 2000, cells: 6000 });
  t.equal(store.requests.length, 2000 - 125, "what was read is kept");
});

t.test("of too many tiles, one in a block of them is read", async (t) => {
  const shape = [600, 1200];
  const values = range(720_000).map((index) => Math.floor(index / 1200) + (index % 1200));
  const tiles: ServedArray = { dtype: "<i2", shape, chunks: [20, 20], dims: ["a", "b"], values };
  const { client, store } = await open(t, { tiles });
  const request = { ...cells("tiles", 240, 120, 1200, 600), range: { low: 0, high: 1757, isLog: false } };
  const frame = await client.ask({ ...request, isMoving: true }, "frame");
  t.match(frame.part, { everyRow: 2, everyColumn: 2, whole: { chunks: 1800, bytes: 1_440_000 } });
  t.equal(store.requests.length, 450);
  const isNear = frame.pixels.every((byte, pixel) => {
    const under = (5 * (Math.floor(pixel / 240) + (pixel % 240)) + 4) / 7;
    return Math.abs(byte - 2 - under) < 6 + 1;
  });
  t.ok(isNear, "at most a chunk away along each axis");
});

t.test("a draft of some chunks is shown until all are read", async (t) => {
  const shape = [40, 40];
  const values = range(1600).map((index) => Math.floor(index / 40) / 2);
  const tiles: ServedArray = { dtype: "<f4", shape, chunks: [2, 2], dims: ["a", "b"], values };
  const { client, store } = await open(t, { tiles });
  // Chunks in a corner of each block of nine are no part of the draft.
  store.hold(/tiles\/(?:3|6|9)\.(?:0|3|6|9)$/);
  const id = client.send(cells("tiles", 40, 40, 40, 40));
  await store.waiting(6);
  const draft = await client.waitFor(
    (answer) => answer.id === id && answer.kind === "frame" && !answer.pixels.includes(UNREAD),
  );
  const { pixels, done, total } = draft as Answer<"frame">;
  t.ok(done < total);
  t.ok(pixels.every((byte, pixel) => Math.abs(((byte - 2) / 251) * 23 - Math.floor(pixel / 40) / 2) < 3));
  store.hold(undefined);
  const isDone = (answer: Answer<"frame">) => answer.done === answer.total;
  const whole = await client.waitFor((answer) => answer.kind === "frame" && isDone(answer));
  t.match((whole as Answer<"frame">).pixels[6 * 40], byteOf(3), "and then each has its own value");
});

t.test("of large chunks that are too much, those in the middle are read", async (t) => {
  const shape = [60, 60];
  const large: ServedArray = {
    ...PLAIN,
    shape,
    chunks: [1, 1],
    dims: ["a", "b"],
    values: range(3600).fill(5),
  };
  const { client, store } = await open(t, { large });
  const request = cells("large", 1800, 1800, 60, 60);
  const frame = await client.ask(request, "frame");
  const { share } = frame.part!;
  t.ok(share > 0.4 && share < 0.5, `${share}`);
  t.ok(store.requests.length > 600 && store.requests.length <= 800, `${store.requests.length}`);
  t.equal(frame.pixels[900 * 1801], byteOf(5));
  t.equal(frame.pixels[0], UNREAD);
  const half = 30 * share;
  const box = { left: 29.5 - half, right: 29.5 + half, top: 29.5 - half, bottom: 29.5 + half };
  const centre = await client.ask({ ...request, viewport: { ...request.viewport, box } }, "frame");
  t.equal(centre.part, undefined, "a box of that share is read whole");
  t.notOk(centre.pixels.includes(UNREAD));
});

t.test("a coordinate of very many chunks is read at some places, and used if it is regular", async (t) => {
  const numbers = range(600).map((index) => index * 6);
  const long = (values: number[]): ServedArray => ({
    ...PLAIN,
    dtype: "<i4",
    shape: [600],
    chunks: [1],
    values,
    dims: ["time"],
  });
  const rows: ServedArray = {
    ...PLAIN,
    shape: [600, 2],
    chunks: [1, 2],
    dims: ["time", "x"],
    values: range(1200),
  };
  const gap = numbers.map((value, index) => (index < 100 ? value : value + 6));
  for (const [values, expected] of [
    [numbers, numbers],
    [gap, undefined],
  ] as const) {
    const { client, store } = await open(t, { time: long([...values]), rows });
    const axis = await client.ask({ kind: "axis", variable: "rows", axis: 0 }, "axis");
    t.same(axis.values.numbers && [...axis.values.numbers].map(Math.round), expected);
    t.ok(store.requests.length <= 65);
  }
});

t.test("a huge chunk is asked about first", async (t) => {
  const huge: ServedArray = { ...PLAIN, shape: [20_000, 20_000], chunks: [20_000, 20_000], values: [] };
  const { client, store } = await open(t, { huge });
  const request = cells("huge", 9, 9, 20_000, 20_000);
  t.match(await client.ask(request, "too-much"), { chunks: 1, bytes: 800_000_000 });
  const { selection, axes } = request;
  const range = { kind: "range", selection, axes, percentiles: [2, 98] } as const;
  for (const viewport of [undefined, request.viewport])
    t.match(await client.ask({ ...range, viewport }, "range"), { range: undefined, count: 0 });
  t.equal(store.requests.length, 0);
});

t.test("frames ahead are read behind the picture, and said to be there", async (t) => {
  const cube: ServedArray = {
    ...PLAIN,
    shape: [3, 4, 6],
    chunks: [1, 4, 6],
    dims: ["t", "lat", "lon"],
    values: range(72),
  };
  const { client, store } = await open(t, { ...ARRAYS, cube });
  const show = { ...cells("cube"), selection: { variable: "cube", at: [0, 0, 0] }, axes: { x: 2, y: 1 } };
  t.same((await client.ask({ kind: "ahead", show, along: 0, steps: [1, 2] }, "cached")).steps, [1, 2]);
  const frame = await client.ask({ ...show, selection: { variable: "cube", at: [2, 0, 0] } }, "frame");
  t.equal(frame.pixels[0], LAST + 1, "48 is above the range");
  t.equal(store.requests.filter((path) => path.startsWith("cube")).length, 2);
});

t.test("curvilinear grids are drawn where their cells are", async (t) => {
  const shape = [4, 6];
  const grid = (name: string, units: string, at: (row: number, column: number) => number): ServedArray => ({
    dtype: "<f8",
    shape,
    chunks: [4, 6],
    dims: ["j", "i"],
    values: range(24).map((index) => at(Math.floor(index / 6), index % 6)),
    attrs: { units, long_name: name },
  });
  const arrays = {
    // Turned by 45°, with sides of √2 degrees.
    la: grid("latitude", "degrees_north", (row, column) => row - column),
    lo: grid("longitude", "degrees_east", (row, column) => 358 + row + column),
    v: { ...PLAIN, dims: ["j", "i"], attrs: { coordinates: "la lo" } },
  };
  const { client, opened } = await open(t, arrays);
  const variable = opened.dataset.variables.find(({ path }) => path === "v");
  t.same(variable?.curvilinear, { latitude: "la", longitude: "lo" });
  const axis = await client.ask({ kind: "axis", variable: "v", axis: 1 }, "axis");
  t.match(axis.extent, { west: -3, east: 7 }, "in one piece across the meridian");
  const box = { left: -4, right: 8, bottom: -7, top: 5 };
  const viewport = { box, width: 120, height: 120, inCells: false };
  const frame = await client.ask({ ...cells("v"), viewport }, "frame");
  for (let cell = 0; cell < 24; cell++) {
    const [row, column] = [Math.floor(cell / 6), cell % 6];
    const [x, y] = [row + column - 2, row - column];
    // Inside of the four corners, which are a degree away.
    for (const [dx, dy] of [
      [0, 0],
      [0.85, 0],
      [-0.85, 0],
      [0, 0.85],
      [0, -0.85],
    ] as const) {
      const pixel = Math.floor((x + dx - box.left) * 10) + 120 * Math.floor((box.top - y - dy) * 10);
      t.equal(frame.pixels[pixel], byteOf(cell), `cell ${cell}`);
    }
    const probe = { kind: "probe" as const, selection: { variable: "v", at: [0, 0] }, axes: { x: 1, y: 0 } };
    const value = await client.ask({ ...probe, x: x + 0.4, y: y - 0.4, inCells: false }, "value");
    t.match(value, { cell: [row, column], value: cell, text: String(cell) });
  }
  t.equal(frame.pixels[0], UNREAD, "outside of the grid");
});

t.test(
  "a grid that moves is drawn where it is at the step that is shown, one that rests is read once",
  async (t) => {
    for (const speed of [0, 10]) {
      const place = (at: (row: number, column: number) => number, drift: number) => ({
        dtype: "<f4",
        shape: [3, 4, 6],
        chunks: [1, 2, 6],
        dims: ["Time", "south_north", "west_east"],
        values: range(72).map(
          (index) => at(Math.floor(index / 6) % 4, index % 6) + drift * Math.floor(index / 24),
        ),
      });
      const arrays = {
        XLAT: { ...place((row) => 10 + row, 0), attrs: { units: "degree_north" } },
        XLONG: { ...place((_, column) => 20 + column, speed), attrs: { units: "degree_east" } },
        v: { ...PLAIN, shape: [3, 4, 6], chunks: [1, 4, 6], dims: ["Time", "south_north", "west_east"] },
      };
      const { client, store } = await open(t, { ...arrays, v: { ...arrays.v, values: range(72) } });
      const axis = await client.ask({ kind: "axis", variable: "v", axis: 2 }, "axis");
      t.match(axis.extent, { west: 19.5, east: 25.5 + 2 * speed, south: 9.5, north: 13.5 });
      const probe = { kind: "probe" as const, axes: { x: 2, y: 1 }, y: 13.2, inCells: false };
      for (const step of [0, 1, 2]) {
        const selection = { variable: "v", at: [step, 0, 0] };
        const value = await client.ask({ ...probe, selection, x: 20 + step * speed }, "value");
        t.match(value, { cell: [step, 3, 0], value: 24 * step + 18 });
      }
      const read = store.requests.filter((path) => path.startsWith("XL"));
      t.equal(new Set(read).size, read.length, "no chunk is read twice");
    }
  },
);

t.test("overviews are all that is read if they have a cell per pixel", async (t) => {
  const coarse = (size: number, value: number): ServedArray => ({
    ...PLAIN,
    shape: [size, size],
    chunks: [4, 4],
    dims: ["a", "b"],
    values: range(size * size).map(() => value),
  });
  const store = await startStore(t, { v: coarse(16, 0) });
  const overviews = await startStore(t, {
    "0/v": coarse(16, 0),
    "1/v": coarse(8, 5),
    "2/v": { ...coarse(4, 100), dtype: "<f4", attrs: { scale_factor: 0.1 } },
  });
  const client = createExploreClient();
  const opened = await client.ask(
    { kind: "open", store: store.url, overviews: overviews.url, group: "", token: "secret" },
    "opened",
  );
  t.match(opened.dataset.variables[0]?.levels, [
    { level: 1, path: "1/v", factors: [2, 2] },
    { level: 2, path: "2/v", factors: [4, 4] },
  ]);
  for (const headers of [...store.headers, ...overviews.headers])
    t.match(headers, { authorization: "Bearer secret", prefer: "respond-direct" }, "bytes, no redirect");
  const small = await client.ask(cells("v", 4, 4, 16, 16), "frame");
  t.match(small, { level: 2, done: 1, total: 1, cells: 16 });
  t.ok(small.pixels.every((byte) => byte === byteOf(10)));
  const large = await client.ask(cells("v", 16, 16, 16, 16), "frame");
  t.match(large, { level: 0, total: 16 });
  t.ok(large.pixels.every((byte) => byte === byteOf(0)));
});

async function open(
  t: Parameters<typeof startStore>[0],
  arrays: Readonly<Record<string, ServedArray>>,
  maxBytes?: number,
) {
  const store: StoreServer = await startStore(t, arrays);
  return { store, ...(await openStore(store, maxBytes)) };
}

const RANGE = { low: 0, high: 23, isLog: false };
const STILL = {
  kind: "show" as const,
  range: RANGE,
  isMoving: false,
  isConfirmed: false,
  axes: { x: 1, y: 0 },
};

/** The whole world. */
function map(variable: string, width: number, height: number): ShowRequest {
  const box = { left: -210, right: 150, bottom: 25, top: 65 };
  return { ...STILL, selection: { variable, at: [0, 0] }, viewport: { box, width, height, inCells: false } };
}

/** Cells as they are stored, the first row at the top. */
function cells(variable: string, width = 6, height = 4, columns = 6, rows = 4): ShowRequest {
  const box = { left: -0.5, right: columns - 0.5, bottom: rows - 0.5, top: -0.5 };
  return { ...STILL, selection: { variable, at: [0, 0] }, viewport: { box, width, height, inCells: true } };
}

function byteOf(value: number): number {
  return 2 + Math.round((value / 23) * 251);
}

function valuesOf({ pixels }: Answer<"frame">): number[] {
  return Array.from(pixels, (byte) => Math.round(((byte - 2) / 251) * 23));
}

function axisArray(dim: string, values: readonly number[], units: string): ServedArray {
  return {
    dtype: "<f4",
    shape: [values.length],
    chunks: [values.length],
    dims: [dim],
    values,
    attrs: { units },
  };
}

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index);
}
