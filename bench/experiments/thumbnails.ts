import { join } from "node:path";
import { makeDemoData } from "../../scripts/demo-data.js";
import { DATA_DIRECTORY, type FieldStore, openFieldStore } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues } from "../data/field.js";
import { readIndexedPng } from "../data/read-png.js";
import { fetchAnswer, fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { readProcessCost } from "../process-cost.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { correlate, median } from "../statistics.js";
import type { Experiment, ExperimentContext } from "./experiment.js";
import { dataProgress, openMibStore } from "./open-mib-store.js";

const SIZES = { full: 64, small: 8, tiny: 2 } as const;
/** Widths of the pictures of each step: pictures of different widths are made anew. Few pictures would measure the compiler. */
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

interface Subject {
  readonly title: string;
  readonly location: string;
  readonly variable: string;
  /** Checks a picture of a step. @throws Error */
  check(png: Buffer, step: number): void;
}

interface PicturesRecord {
  readonly round: number;
  readonly subject: string;
  readonly pictures: number;
  readonly seconds: number;
  readonly picturesPerSecond: number;
  readonly cpuSeconds: number | undefined;
}

/** Pictures that one worker makes. */
export const thumbnails: Experiment = {
  title: "pictures of slices per second with one worker, each once, empty cache",
  async run(context) {
    const { rounds, onProgress } = context;
    const subjects = await openSubjects(context);
    const records: PicturesRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      const order = round % 2 === 0 ? subjects : [...subjects].reverse();
      for (const [i, subject] of order.entries()) {
        onProgress((round + i / order.length) / rounds, subject.title);
        records.push(await measure(subject, round, context));
      }
    }
    const ofSubject = ({ title }: Subject) => records.filter(({ subject }) => subject === title);
    const rates = (subject: Subject) => ofSubject(subject).map(({ picturesPerSecond }) => picturesPerSecond);
    return {
      records,
      tables: [
        {
          columns: ["", "pictures/s", "lowest", "highest", "CPU ms/picture"],
          rows: subjects.map((subject) => [
            subject.title,
            ...[median(rates(subject)), Math.min(...rates(subject)), Math.max(...rates(subject))],
            median(
              ofSubject(subject).flatMap(({ cpuSeconds, pictures }) =>
                cpuSeconds === undefined ? [] : [(cpuSeconds * 1e3) / pictures],
              ),
            ),
          ]),
        },
        {
          title: "Each round, pictures/s",
          columns: ["round", ...subjects.map(({ title }) => title)],
          rows: Array.from({ length: rounds }, (_, round) => [
            round + 1,
            ...subjects.map((subject) => rates(subject)[round]),
          ]),
        },
      ],
      goals: subjects.map((subject) => {
        const rate = median(rates(subject))!;
        return {
          what: `pictures per second and worker: ${subject.title}`,
          expected: "at least 50",
          measured: rate.toFixed(0),
          isMet: rate >= 50,
        };
      }),
      notes: [
        `\`--workers 1\`, a fresh server with an empty cache for each measurement, ${CONNECTIONS} connections. The worker has made one picture before; most of its code is compiled while it is measured. Pictures are 320 pixels wide or some pixels less, since pictures of another size are made anew.`,
        "Stored chunks of the field are read and decoded for each picture. The demo's have 146 steps, and stay decoded in the worker for other steps of the same width.",
        `Before each measurement the picture of one step was read as PNG; those of the field have to correlate with its values by ${LEAST_CORRELATION} or more. That one step is not asked for again.`,
      ],
    };
  },
};

async function openSubjects(context: ExperimentContext): Promise<Subject[]> {
  const steps = SIZES[context.size];
  const mib = await openMibStore(context, steps);
  const small = await openFieldStore("kib64", 128, steps, dataProgress(context), context.parent);
  const demo = await makeDemoData(join(context.parent ?? DATA_DIRECTORY, "demo"));
  const field = (title: string, store: FieldStore, side: number): Subject => ({
    ...{ title, location: store.directory, variable: "field" },
    check: (png, step) => checkPicture(png, step, side),
  });
  return [
    field("16 chunks of 1 MiB, 2048 × 2048 cells", mib, FIELD_SIDE),
    field("16 of 256 chunks of 64 KiB, the centre", small, FIELD_SIDE / 4),
    {
      ...{ title: "the demo's air temperature", location: demo.air, variable: "air" },
      check: (png) => void readIndexedPng(png),
    },
  ];
}

async function measure(
  { title, location, variable, check }: Subject,
  round: number,
  { size, freshFolder }: ExperimentContext,
): Promise<PicturesRecord> {
  const scratch = freshFolder("server");
  const server = await startZpublish({ datasets: { shown: location }, scratch, args: ["--workers", "1"] });
  try {
    const steps = SIZES[size];
    const checked = round % steps;
    check(await checkedPicture(server, variable, checked), checked);
    const paths = WIDTHS[size].flatMap((width) =>
      Array.from({ length: steps }, (_, step) => step)
        .filter((step) => step !== checked)
        .map((step) => pathOf(variable, step, width)),
    );
    const before = readProcessCost(server.pid);
    const load = await runNodeLoad({
      ...{ baseUrl: server.baseUrl, paths, headers: {}, connections: CONNECTIONS },
      ...{ length: "once", status: 200, scratch },
    });
    const after = readProcessCost(server.pid);
    checkLoad(load, `thumbnails: ${title}`, server);
    const { requests: pictures, seconds } = load;
    return {
      ...{ round, subject: title, pictures, seconds, picturesPerSecond: pictures / seconds },
      cpuSeconds: before && after && after.cpuSeconds - before.cpuSeconds,
    };
  } finally {
    await server.stop();
  }
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

/** A picture follows the values of the box with the field's middle cell, in a grid of such boxes. @param side Cells along each side of what is shown. @throws Error */
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
    throw new Error(
      `thumbnails: expected a picture of step ${step}, received a correlation of ${correlation}`,
    );
}
