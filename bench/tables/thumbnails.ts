import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import { DATA_DIRECTORY } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues } from "../data/field.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { measureLoad } from "../load/load.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { correlate } from "../statistics.js";
import { fetchAnswer, fetchBody } from "../subjects/check-answers.js";
import { openKib64Store, openMibStore } from "./rows.js";

const SIZES = { full: 64, small: 8, tiny: 2 } as const;
/** Widths of the pictures of each step: pictures of another width are made again. Few pictures would measure the compiler. */
const WIDTHS = {
  full: [320, 319, 318, 317],
  small: [320, 319, 318, 317, 315, 314, 313, 312],
  tiny: [320],
} as const;
/** Width of the picture that is checked, which is none of these. */
const CHECKED_WIDTH = 316;
const CONNECTIONS = 8;
/** Least correlation between a picture and the field that it shows. */
const LEAST_CORRELATION = 0.95;
const LEAST_PER_SECOND = 50;

interface Shown {
  readonly title: string;
  readonly location: string;
  readonly variable: string;
  /** Checks a picture of a step. @throws Error */
  check(png: Buffer, step: number): void;
}

/** Pictures that one worker makes. */
export const thumbnails: BenchTable = {
  title: "pictures of slices per second with one worker, each once, empty cache",
  async *contests(context) {
    const shown = await openShown(context);
    yield {
      contestants: shown.flatMap((each) =>
        perBuild(context, each.title, (build, round) => makePictures(each, { build, round }, context)),
      ),
      compared: "pictures/s",
      aims: shown.map(({ title }) => ({ of: title, least: LEAST_PER_SECOND })),
      notes: [
        `\`--workers 1\`, a fresh server with an empty cache for each measurement, ${CONNECTIONS} connections. The worker has made one picture before; most of its code is compiled while it is measured.`,
        "Stored chunks of the field are read and decoded for each picture. The demo's have 146 steps, and stay decoded in the worker for other steps of the same width.",
        `Before each measurement the picture of one step was read as PNG; those of the field have to correlate with its values by ${LEAST_CORRELATION} or more.`,
      ],
    };
  },
};

async function openShown(context: BenchContext): Promise<Shown[]> {
  const steps = SIZES[context.size];
  const mib = await openMibStore(context, steps);
  const small = await openKib64Store(context, steps);
  const demo = await makeDemoData(join(context.parent ?? DATA_DIRECTORY, "demo"));
  const field = (title: string, location: string, side: number): Shown => ({
    ...{ title, location, variable: "field" },
    check: (png, step) => checkPicture(png, step, side),
  });
  return [
    field("16 chunks of 1 MiB, 2048 × 2048 cells", mib.directory, FIELD_SIDE),
    field("16 of 256 chunks of 64 KiB, the centre", small.directory, FIELD_SIDE / 4),
    {
      ...{ title: "the demo's air temperature", location: demo.air, variable: "air" },
      check: (png) => void readIndexedPng(png),
    },
  ];
}

function makePictures(
  { location, variable, check }: Shown,
  { build, round }: { readonly build: Build; readonly round: number },
  { size, freshFolder }: BenchContext,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const settings = { build, datasets: { shown: location }, scratch, args: ["--workers", "1"] };
  return withZpublish(settings, async (server) => {
    const checked = round % SIZES[size];
    check(await checkedPicture(server, variable, checked), checked);
    const paths = WIDTHS[size].flatMap((width) =>
      Array.from({ length: SIZES[size] }, (_, step) => step)
        .filter((step) => step !== checked)
        .map((step) => pathOf(variable, step, width)),
    );
    const load = { paths, connections: CONNECTIONS, length: "once" as const, scratch };
    return measureLoad(server, { ...load, unit: "pictures" });
  });
}

function pathOf(variable: string, step: number, width: number): string {
  return `/datasets/shown/thumbnail/${variable}.png?index.time=${step}&size=${width}`;
}

/** Asks for a picture that nothing else asks for. @throws Error if it comes from the cache. */
async function checkedPicture({ baseUrl }: RunningZpublish, variable: string, step: number): Promise<Buffer> {
  const path = pathOf(variable, step, CHECKED_WIDTH);
  const { status, headers, body } = await fetchAnswer(baseUrl, path);
  if (status !== 200 || headers.get("x-cache") !== "MISS" || headers.get("content-type") !== "image/png")
    throw new Error(`${path}: expected a picture that is made, received ${status} ${headers.get("x-cache")}`);
  const again = await fetchBody(baseUrl, path);
  if (!again.equals(body)) throw new Error(`${path}: expected the same picture again`);
  return body;
}

/** A picture follows the values of the box around the field's middle cell. @param side Cells along each side of it. @throws Error */
function checkPicture(png: Buffer, step: number, side: number): void {
  const { width, height, pixels } = readIndexedPng(png);
  const begin = side === FIELD_SIDE ? 0 : FIELD_SIDE / 2;
  const values = fieldValues({ begin: [step, begin, begin], length: [1, side, side] });
  const shown = Array.from(pixels, (_, index) => {
    const y = Math.floor(((Math.floor(index / width) + 0.5) * side) / height);
    const x = Math.floor((((index % width) + 0.5) * side) / width);
    return values[y * side + x]!;
  });
  const correlation = correlate([...pixels], shown);
  if (!(correlation >= LEAST_CORRELATION))
    throw new Error(`expected a picture of step ${step}, received a correlation of ${correlation}`);
}

/** A picture with a palette, as `/thumbnail/` answers it. */
interface IndexedPicture {
  readonly width: number;
  readonly height: number;
  /** Index in the palette of each pixel, row after row from the top. */
  readonly pixels: Uint8Array;
}

const SIGNATURE = "89504e470d0a1a0a";

/** Reads a PNG of eight bits per pixel with a palette, whose rows are not filtered. @throws Error if it is another. */
export function readIndexedPng(bytes: Buffer): IndexedPicture {
  if (bytes.toString("hex", 0, 8) !== SIGNATURE)
    throw new Error(`expected a PNG, received ${bytes.subarray(0, 100)}`);
  const chunks = new Map<string, Buffer[]>();
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at)) {
    const type = bytes.toString("latin1", at + 4, at + 8);
    const content = bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at));
    chunks.set(type, [...(chunks.get(type) ?? []), content]);
  }
  const head = chunks.get("IHDR")?.[0];
  if (head?.[8] !== 8 || head[9] !== 3 || !chunks.has("PLTE") || !chunks.has("IEND"))
    throw new Error("expected a PNG of eight bits with a palette");
  const [width, height] = [head.readUInt32BE(0), head.readUInt32BE(4)];
  const rows = inflateSync(Buffer.concat(chunks.get("IDAT") ?? []));
  if (rows.length !== height * (width + 1)) throw new Error(`expected ${height} rows of ${width} pixels`);
  const pixels = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    const begin = y * (width + 1);
    if (rows[begin] !== 0) throw new Error(`expected rows without a filter, received filter ${rows[begin]}`);
    pixels.set(rows.subarray(begin + 1, begin + 1 + width), y * width);
  }
  return { width, height, pixels };
}
